/** The longest wait that a provider may ask for, in milliseconds. */
export const MAX_RETRY_AFTER_MS = 60_000;

const clamp = (ms: number): number => Math.min(MAX_RETRY_AFTER_MS, Math.max(0, Math.round(ms)));

const NUMBER = /^[+-]?\d+(\.\d+)?$/;

const parseHeader = (value: string, now: number): number | undefined => {
  const text = value.trim();
  if (NUMBER.test(text)) return clamp(Number(text) * 1000);
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : clamp(at - now);
};

/**
 * What `retry-after-ms` or `retry-after` asks for (seconds or an HTTP date), clamped to 0…60 s;
 * undefined when neither says anything that can be read.
 *
 * @param now milliseconds since the epoch
 */
export const retryAfterMs = (
  headers: Readonly<Record<string, string | string[] | undefined>>,
  now: number,
): number | undefined => {
  const precise = headers['retry-after-ms'];
  if (typeof precise === 'string' && NUMBER.test(precise.trim())) return clamp(Number(precise));
  const plain = headers['retry-after'];
  return typeof plain === 'string' ? parseHeader(plain, now) : undefined;
};
