import { REDACTED, redactText } from './redact-text.js';

/** Limits of a logged object; deeper or longer ones are cut. */
const MAX_DEPTH = 6;
const MAX_ITEMS = 100;

// Keys are compared in lower case without separators: `api_key`, `apiKey` and `API-KEY` are equal.
const SECRET_KEYS: ReadonlySet<string> = new Set([
  'authorization',
  'proxyauthorization',
  'cookie',
  'setcookie',
  'password',
  'pass',
  'passwd',
  'pgpassword',
  'pwd',
  'secret',
  'token',
  'credential',
  'credentials',
  'apikey',
  'privatekey',
  'masterkey',
  'connectionstring',
]);
const SECRET_ENDINGS = ['password', 'passwd', 'secret', 'apikey', 'privatekey', 'token', 'credentials'];
/** Keys that end like a secret but are not one. */
const PLAIN_KEYS: ReadonlySet<string> = new Set(['nexttoken', 'msgtoken', 'pertoken']);

/** Returns whether a key holds a secret, by its name. Counters (`inputTokens`, `tokens`) do not. */
export const isSecretKey = (key: string): boolean => {
  const plain = key.toLowerCase().replaceAll(/[-_.\s]/g, '');
  if (PLAIN_KEYS.has(plain)) return false;
  return SECRET_KEYS.has(plain) || SECRET_ENDINGS.some((ending) => plain.endsWith(ending));
};

const redactError = (error: Error, depth: number): Record<string, unknown> => {
  const { kind, code, data } = error as Partial<{
    kind: unknown;
    code: unknown;
    data: unknown;
  }>;
  return {
    type: error.name,
    ...(kind === undefined ? {} : { kind }),
    ...(code === undefined ? {} : { code }),
    message: redactText(error.message),
    ...(data === undefined ? {} : { data: redactValue(data, depth + 1) }),
    ...(error.stack === undefined ? {} : { stack: redactText(error.stack) }),
    ...(error.cause === undefined ? {} : { cause: redactValue(error.cause, depth + 1) }),
  };
};

const redactObject = (value: object, depth: number): Record<string, unknown> => {
  const entries = Object.entries(value).slice(0, MAX_ITEMS);
  return Object.fromEntries(
    entries.map(([key, item]) => [key, isSecretKey(key) ? REDACTED : redactValue(item, depth + 1)]),
  );
};

/** Copies a value for logging: without secrets, with errors as plain data, and bounded in size. */
export const redactValue = (value: unknown, depth = 0): unknown => {
  if (typeof value === 'string') return redactText(value);
  if (typeof value === 'bigint') return value.toString();
  if (value === null || typeof value !== 'object') return typeof value === 'function' ? undefined : value;
  if (depth > MAX_DEPTH) return '[deeper]';
  if (value instanceof Error) return redactError(value, depth);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (value instanceof Map || value instanceof Set) return `[${value.constructor.name} of ${value.size}]`;
  if (Array.isArray(value)) return value.slice(0, MAX_ITEMS).map((item) => redactValue(item, depth + 1));
  return redactObject(value, depth);
};
