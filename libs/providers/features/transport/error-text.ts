/** Maximum length of a provider's message, UTF-16 units. */
export const MAX_ERROR_MESSAGE = 500;
/** Longest wait that a provider may ask for, ms. */
export const MAX_RETRY_AFTER_MS = 60_000;

/** Response headers, names in lower case. */
export type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>;

type Fields = Readonly<Record<string, unknown>>;
const isObject = (value: unknown): value is Fields => typeof value === 'object' && value !== null;

const toText = (value: unknown): string | undefined => {
  if (typeof value === 'string' && value.trim() !== '') return value;
  if (Array.isArray(value)) return toText(value[0]);
  if (!isObject(value)) return undefined;
  return toText(value['message']) ?? toText(value['msg']) ?? toText(value['detail']);
};

/**
 * Returns the message of an error body, in any of the shapes that vendors and their proxies use.
 */
export const messageOf = (body: unknown): string | undefined => {
  // Google's errors are a list of one.
  if (Array.isArray(body)) return messageOf(body[0]);
  if (!isObject(body)) return toText(body);
  return toText(body['error']) ?? toText(body['message']) ?? toText(body['detail']) ?? toText(body['errors']);
};

/** Details of an error in the form of Google's APIs. https://google.aip.dev/193 */
const detailsOf = (error: Fields): readonly Fields[] =>
  Array.isArray(error['details']) ? error['details'].filter(isObject) : [];

/**
 * Returns the vendor's codes for an error: `insufficient_quota`, `overloaded_error`,
 * `RESOURCE_EXHAUSTED`, or a status as a number.
 */
export const codesOf = (body: unknown): readonly string[] => {
  if (Array.isArray(body)) return codesOf(body[0]);
  const error = isObject(body) && isObject(body['error']) ? body['error'] : body;
  if (!isObject(error)) return [];
  const reasons = detailsOf(error).map(({ reason }) => reason);
  return [error['code'], error['type'], error['status'], ...reasons]
    .filter((code) => code !== undefined && code !== null)
    .map(String);
};

const DURATION = /^(\d{1,9}(?:\.\d{1,9})?)s$/;

/** Returns the ids of the used up quotas of an error in the form of Google's APIs. */
const quotasOf = (body: unknown): readonly string[] => {
  if (Array.isArray(body)) return quotasOf(body[0]);
  if (!isObject(body) || !isObject(body['error'])) return [];
  const violations = detailsOf(body['error']).flatMap(({ violations: all }) =>
    Array.isArray(all) ? all : [],
  );
  return violations.filter(isObject).flatMap(({ quotaId }) => (typeof quotaId === 'string' ? [quotaId] : []));
};

/** Returns the wait of an error in the form of Google's APIs, ms. */
const retryDelayOf = (body: unknown): number | undefined => {
  if (Array.isArray(body)) return retryDelayOf(body[0]);
  if (!isObject(body) || !isObject(body['error'])) return undefined;
  const delays = detailsOf(body['error']).map(({ retryDelay }) => DURATION.exec(String(retryDelay))?.[1]);
  const seconds = delays.find((delay) => delay !== undefined);
  return seconds === undefined ? undefined : Number(seconds) * 1_000;
};

/** The wait in texts of OpenAI and Groq, which name it in hours, minutes, seconds or ms. */
const TRY_AGAIN = /try again in (?:(\d{1,4})h)?(?:(\d{1,4})m(?!s))?(?:(\d{1,6}(?:\.\d{1,9})?)(ms|s))?/i;

const saidWaitOf = (message: string): number | undefined => {
  const [all, hours = 0, minutes = 0, rest = 0, unit = 's'] = TRY_AGAIN.exec(message) ?? [];
  const ms =
    Number(hours) * 3_600_000 + Number(minutes) * 60_000 + Number(rest) * (unit === 'ms' ? 1 : 1_000);
  return all === undefined || ms === 0 ? undefined : ms;
};

/** Returns the text as one line without control characters, at most `max` long. */
export const clipLine = (text: string, max: number): string => {
  const line = text
    .toWellFormed()
    // Control characters must not reach a log line or a terminal.
    .replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' ')
    .trim();
  return line.length <= max ? line : `${line.slice(0, max - 1).toWellFormed()}…`;
};

/** Returns the text as one line without control characters, at most `MAX_ERROR_MESSAGE` long. */
export const toOneLine = (text: string): string => clipLine(text, MAX_ERROR_MESSAGE);

/** Parses JSON. Returns undefined for any other text. */
export const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
};

const isHtml = (text: string): boolean => /^\s*<(?:!doctype|html|head|body)/i.test(text);

/** Message and codes of the body of an error. The message is neither bounded nor redacted. */
interface ErrorBody {
  readonly message: string | undefined;
  readonly codes: readonly string[];
  /** Ids of the used up quotas, where the vendor names them. */
  readonly quotas: readonly string[];
  readonly form: 'text' | 'html';
}

export const readErrorBody = (text: string): ErrorBody => {
  const body = parseJson(text);
  if (body !== undefined)
    return { message: messageOf(body), codes: codesOf(body), quotas: quotasOf(body), form: 'text' };
  if (isHtml(text)) return { message: undefined, codes: [], quotas: [], form: 'html' };
  return { message: toText(text), codes: [], quotas: [], form: 'text' };
};

const NUMBER = /^[+-]?\d+(\.\d+)?$/;
const DAY_MS = 86_400_000;

const clampWait = (ms: number): number => Math.min(DAY_MS, Math.max(0, Math.round(ms)));

/** Returns the wait that `retry-after-ms` or `retry-after` (seconds or an HTTP date) asks for. */
const headerWaitMs = (headers: ResponseHeaders, now: number): number | undefined => {
  const precise = headers['retry-after-ms'];
  if (typeof precise === 'string' && NUMBER.test(precise.trim())) return Number(precise);
  const plain = headers['retry-after'];
  if (typeof plain !== 'string') return undefined;
  const text = plain.trim();
  if (NUMBER.test(text)) return Number(text) * 1_000;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : at - now;
};

/**
 * Returns the wait that a refusal asks for, by its headers, else by its body, ms, clamped to a day.
 * Returns undefined for a refusal that names none.
 *
 * @param now milliseconds since the epoch
 */
export const requestedWaitMs = (headers: ResponseHeaders, text: string, now: number): number | undefined => {
  const body = parseJson(text);
  const wait =
    headerWaitMs(headers, now) ??
    retryDelayOf(body) ??
    saidWaitOf((messageOf(body) ?? '').slice(0, MAX_ERROR_MESSAGE));
  return wait === undefined ? undefined : clampWait(wait);
};
