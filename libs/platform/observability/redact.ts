/** Replacement of a secret. */
export const REDACTED = '[redacted]';

/** Limits of a logged object; deeper or longer ones are cut. */
const MAX_DEPTH = 6;
const MAX_ITEMS = 100;
const MAX_TEXT = 8_192;

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

// The password of a URL, a bearer token, secrets in a query, and the formats of well-known keys.
const URL_PASSWORD = /(?<=[a-z0-9+.-])(:\/\/[^\s/:@]*:)[^\s/@]+(@)/gi;
const BEARER = /\b(Bearer|Basic)\s+[\w.~+/=-]{16,}/gi;
const QUERY =
  /([?&](?:key|api[-_]?key|access_token|token|auth|code|sig|signature|password|secret)=)[^&\s"'<>]{6,}/gi;
/** Prefix, separator, secret: Anthropic, OpenAI, Stripe, Slack, GitHub, GitLab, and our own keys. */
const PREFIXED = /\b(sk|pk|rk|xox[abeoprs]|xapp|gh[pousr]|github_pat|glpat|ak)([-_])[\w-]{12,}/g;
/** The same of npm, Hugging Face, Groq and the admin key, whose prefixes are also those of names. */
const LONG = /\b(npm|hf|gsk|antiphon)(_)(?:[A-Za-z0-9]{30,}|[\w-]{43}(?![\w-]))/g;
/** Google's API keys and OAuth tokens, AWS key ids, and SendGrid's keys. */
const FIXED = /\b(AIza[\w-]{30,}|ya29\.[\w-]{20,}|A(?:KIA|SIA)[A-Z0-9]{16}|SG\.[\w-]{16,}\.[\w-]{16,})/g;
// A part ends where another one could begin, so that none begins within it.
// eslint-disable-next-line house/linear-regexp
const JWT = /\beyJ(?:(?!-eyJ)[\w-]){8,}\.[\w-]{8,}(?:\.[\w-]*)?/g;
const PRIVATE_KEY = /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g;
/** Further text that is searched, so that a cut does not hide the end of a secret. */
const OVERLAP = 512;

/** Replaces what looks like a secret in free text, and cuts it to a maximum length. */
export const redactText = (text: string): string => {
  const safe = text
    .slice(0, MAX_TEXT + OVERLAP)
    .replace(PRIVATE_KEY, REDACTED)
    .replace(URL_PASSWORD, `$1${REDACTED}$2`)
    .replace(BEARER, `$1 ${REDACTED}`)
    .replace(QUERY, `$1${REDACTED}`)
    .replace(JWT, REDACTED)
    .replace(FIXED, REDACTED)
    .replace(PREFIXED, `$1$2${REDACTED}`)
    .replace(LONG, `$1$2${REDACTED}`);
  return text.length > MAX_TEXT ? `${safe.slice(0, MAX_TEXT)}… (${text.length} characters)` : safe;
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
