import type { AnswerRules } from '@antiphon/contracts/sandbox';

/** Response of a platform to a request. */
export interface PlatformAnswer {
  readonly status: number;
  /** Value of `Retry-After`. */
  readonly retryAfter: string | null;
  readonly body: string;
}

export type AnswerVerdict =
  | { readonly kind: 'sent'; readonly platformId: string | null }
  /** The platform did not take it, and may later. `afterMs` is null if it names no time. */
  | { readonly kind: 'later'; readonly code: string; readonly afterMs: number | null }
  /** A server between may have passed it on. */
  | { readonly kind: 'unknown'; readonly code: string }
  | { readonly kind: 'refused'; readonly code: string; readonly detail: string | null };

const MAX_DETAIL = 200;
/** Maximum delay that a platform may ask for, ms. */
const MAX_DELAY_MS = 3_600_000;

const parse = (body: string): unknown => {
  try {
    return JSON.parse(body) as unknown;
  } catch {
    return null; // a platform may answer text
  }
};

/** Returns the value at a path such as `result.0.id`. */
export const valueAt = (value: unknown, path: string | undefined): unknown => {
  if (path === undefined) return undefined;
  let found = value;
  for (const key of path.split('.')) {
    if (found === null || typeof found !== 'object' || !Object.hasOwn(found, key)) return undefined;
    found = (found as Readonly<Record<string, unknown>>)[key];
  }
  return found;
};

const textOf = (value: unknown): string | null =>
  (typeof value === 'string' && value !== '') || typeof value === 'number'
    ? String(value)
        .replaceAll(/\p{Cc}/gu, ' ')
        .slice(0, MAX_DETAIL)
    : null;

const delayOf = (seconds: unknown): number | null => {
  const value = typeof seconds === 'string' && seconds.trim() !== '' ? Number(seconds) : seconds;
  if (typeof value !== 'number' || !Number.isFinite(value) || value < 0) return null;
  return Math.min(MAX_DELAY_MS, Math.ceil(value * 1_000));
};

/** Codes of platforms that answer 200 to a request that they limit. */
const LIMITED = /^(?:rate_?limited|ratelimited|too_many_requests)$/i;

/** Reads what a platform answered, by the rules that its plug-in declares. */
export const readAnswer = (
  { status, retryAfter, body }: PlatformAnswer,
  rules: AnswerRules,
): AnswerVerdict => {
  const json = parse(body);
  const code = `HTTP.${status}`;
  const afterMs = delayOf(valueAt(json, rules.retry_after)) ?? delayOf(retryAfter);
  const detail = textOf(valueAt(json, rules.error));
  if (status === 429) return { kind: 'later', code, afterMs };
  if (status === 502 || status === 504) return { kind: 'unknown', code };
  if (status >= 500) return { kind: 'later', code, afterMs };
  if (status < 200 || status >= 300) return { kind: 'refused', code, detail };
  if (rules.ok === undefined || valueAt(json, rules.ok) === true)
    return { kind: 'sent', platformId: textOf(valueAt(json, rules.id)) };
  if (detail !== null && LIMITED.test(detail)) return { kind: 'later', code: 'CHANNEL.LIMITED', afterMs };
  return { kind: 'refused', code: 'CHANNEL.NOT_OK', detail };
};

const FIRST_BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 300_000;
/** Attempts of one part, after which it is a dead letter. */
export const MAX_ATTEMPTS = 8;

/** Returns the delay before the attempt after `attempts` ones, ms. */
export const backoffMs = (attempts: number): number =>
  Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** Math.max(0, attempts - 1));
