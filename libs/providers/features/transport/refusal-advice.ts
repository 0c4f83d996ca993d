import { MAX_ERROR_MESSAGE } from './error-text.js';

/** Status, address, codes and text of a refusal, from which its remedy is read. */
export interface RefusalSigns {
  /** Undefined for an error within a stream. */
  readonly status: number | undefined;
  readonly endpoint: string;
  readonly codes: readonly string[];
  readonly message: string;
}

/** Remedies of refusals that no retry can change, with any status. */
const FINAL = new Set(['no_credit', 'refused_key', 'quota_used_up']);

export const isTransientStatus = (status: number): boolean =>
  status >= 500 || status === 498 || status === 408 || status === 409 || status === 425 || status === 429;

/** Returns true if another try may succeed within minutes. */
export const isTransient = (status: number, advice: string): boolean =>
  isTransientStatus(status) && !FINAL.has(advice);

/** LiteLLM without a database says `no_db_connection` to any key but its own. */
const REFUSED_KEY =
  /^(?:401|403|invalid_api_key|API_KEY_\w+|authentication_error|permission_error|no_db_connection)$/;
const NO_CREDIT =
  /^(?:402|insufficient_quota|exceeded_current_quota_error|billing_hard_limit_reached|billing_error)$/;
const NOT_FOUND = /^(?:404|model_not_found|not_found_error)$/;
const TOO_LONG = /^(?:413|context_length_exceeded|exceed_context_size_error|request_too_large)$/;

/** Words of vendors whose status does not say it, and the code that the words stand for. */
const SAYINGS: readonly (readonly [words: string, code: string])[] = [
  ['credit balance is too low', '402'],
  ['insufficient balance', '402'],
  ['api key not valid', '401'],
  ['invalid api key', '401'],
  ['invalid model name', '404'],
  ['is not a valid model', '404'],
  ['model not found', '404'],
  ['model does not exist', '404'],
  ['model not exist', '404'],
  ['unknown model', '404'],
  ['maximum context length', '413'],
  ['available context size', '413'],
  ['context window', '413'],
  ['prompt is too long', '413'],
  ['input is too long', '413'],
  ['exceeds the maximum number of tokens', '413'],
];

/** Quotas of periods that no retry outlasts, in vendors' texts and in Google's ids of quotas. */
const LONG_PERIOD =
  /\b(?:per|a|this|the)[ -](?:day|week|month)\b|\b(?:daily|weekly|monthly)\b|\b(?:rpd|tpd)\b|per-?(?:day|month)|usage limit/;
const LOADING = /\bloading\b/;
const OVERLOADED = /overload|over capacity|capacity|unavailable|busy/;
const RATE = /rate.?limit|throttl|too many requests|resource_exhausted/;

/** Returns the remedy of a refusal that a wait may change; empty for any other. */
const transientAdvice = (status: number | undefined, said: string): string => {
  const isOverCapacity = OVERLOADED.test(said) || status === 503 || status === 529 || status === 498;
  if (status === 429 || (status === undefined && RATE.test(said))) {
    if (LONG_PERIOD.test(said)) return 'quota_used_up';
    return /overload/.test(said) ? 'overloaded' : 'rate_limited';
  }
  if (status === 503 && LOADING.test(said)) return 'loading';
  if (status === undefined ? OVERLOADED.test(said) : isOverCapacity) return 'overloaded';
  return status !== undefined && isTransientStatus(status) ? 'failed' : '';
};

/** Returns the code of the remedy for a refusal; empty where none is known. */
export const adviceFor = ({ status, endpoint, codes, message }: RefusalSigns): string => {
  const text = message.slice(0, MAX_ERROR_MESSAGE).toLowerCase();
  const sayings = SAYINGS.filter(([words]) => text.includes(words)).map(([, code]) => code);
  const reasons = [...codes, ...sayings, String(status)];
  const is = (pattern: RegExp): boolean => reasons.some((reason) => pattern.test(reason));
  const hasNoVersion = status === 404 && !/\/v\d/.test(endpoint);
  const advice = transientAdvice(status, [text, ...codes].join(' ').toLowerCase());
  if (is(NO_CREDIT)) return 'no_credit';
  if (is(REFUSED_KEY)) return 'refused_key';
  if (advice !== '') return advice;
  if (is(NOT_FOUND)) return hasNoVersion ? 'no_version' : 'not_found';
  if (is(TOO_LONG)) return 'too_long';
  if (status === undefined) return '';
  return status >= 300 && status < 400 ? 'redirect' : 'not_accepted';
};
