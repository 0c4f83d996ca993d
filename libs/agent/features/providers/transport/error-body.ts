/** Of a provider's message, in UTF-16 units. */
export const MAX_ERROR_MESSAGE = 500;

type Fields = Readonly<Record<string, unknown>>;
const isObject = (value: unknown): value is Fields => typeof value === 'object' && value !== null;

const asText = (value: unknown): string | undefined => {
  if (typeof value === 'string' && value.trim() !== '') return value;
  if (Array.isArray(value)) return asText(value[0]);
  if (!isObject(value)) return undefined;
  return asText(value['message']) ?? asText(value['msg']) ?? asText(value['detail']);
};

/** The message in any of the shapes that vendors and their proxies use, undefined when there is none. */
export const messageOf = (body: unknown): string | undefined => {
  if (!isObject(body)) return asText(body);
  return asText(body['error']) ?? asText(body['message']) ?? asText(body['detail']) ?? asText(body['errors']);
};

/** The vendor's own word for what went wrong (`insufficient_quota`, `overloaded_error`, or a status as a number). */
export const codesOf = (body: unknown): readonly string[] => {
  const error = isObject(body) && isObject(body['error']) ? body['error'] : body;
  if (!isObject(error)) return [];
  return [error['code'], error['type']].filter((code) => code !== undefined && code !== null).map(String);
};

/** One line, without control characters, bounded. */
export const tidy = (text: string): string => {
  const line = text
    .toWellFormed()
    // These must not reach a log line or a terminal.
    .replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' ')
    .trim();
  return line.length <= MAX_ERROR_MESSAGE ? line : `${line.slice(0, MAX_ERROR_MESSAGE - 1).toWellFormed()}…`;
};

/** Parses a JSON body; undefined for anything else. */
export const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
};

const looksLikeHtml = (text: string): boolean => /^\s*<(?:!doctype|html|head|body)/i.test(text);

/** What a person should read of an error's body, untidied and unredacted; undefined when it says nothing. */
export const readErrorBody = (text: string): { message: string | undefined; codes: readonly string[] } => {
  const body = parseJson(text);
  if (body !== undefined) return { message: messageOf(body), codes: codesOf(body) };
  if (looksLikeHtml(text)) return { message: 'an HTML page instead of an error message', codes: [] };
  return { message: asText(text), codes: [] };
};
