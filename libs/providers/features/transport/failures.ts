import { ModelFailure } from '@antiphon/providers-domain';
import type { ModelFailureDetails, ModelUsage, ReportedInput } from '@antiphon/providers-domain';
import { textOf } from '@antiphon/contracts/causes';
import type { AnswerProblem, Cause } from '@antiphon/contracts/causes';
import type { Redact } from '@antiphon/observability';
import type { ConnectionTarget } from './connection-failures.js';
import { MAX_ERROR_MESSAGE, clipLine, codesOf, messageOf } from './error-text.js';
import { readErrorBody, retryAfterMs, toOneLine } from './error-text.js';
import type { ResponseHeaders } from './error-text.js';

/** A response that was not a 2xx, as far as it was read. */
export interface HttpRefusal {
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly body: string;
}

type Details = Partial<ModelFailureDetails> & { readonly cause?: unknown };

const create = (details: ModelFailureDetails, cause: unknown): ModelFailure =>
  new ModelFailure(details, cause === undefined ? {} : { cause });

/** A wait that ended by its limit. */
export const timedOut = (
  wait: Omit<Extract<Cause, { kind: 'provider_wait' }>, 'kind'>,
  dispatched: boolean,
  retryable: boolean,
): ModelFailure => {
  const why = { kind: 'provider_wait', ...wait } as const;
  return create({ reason: 'provider_timeout', why, dispatched, retryable }, undefined);
};

export const cancelled = (dispatched: boolean): ModelFailure =>
  create(
    { reason: 'cancelled', why: { kind: 'model_call_cancelled' }, dispatched, retryable: false },
    undefined,
  );

/** A response that breaks the vendor's format. No part of it may run. */
export const brokenAnswer = (
  problem: AnswerProblem,
  { cause, detail = '', ...details }: Details & { readonly detail?: string | number } = {},
): ModelFailure => {
  const why = { kind: 'provider_answer_broken', problem, detail } as const;
  return create({ reason: 'provider_protocol', why, dispatched: true, retryable: true, ...details }, cause);
};

/** A response of another content type than the expected one. */
export const wrongType = (why: Omit<Extract<Cause, { kind: 'provider_wrong_type' }>, 'kind'>): ModelFailure =>
  create(
    {
      ...{ reason: 'provider_protocol', why: { kind: 'provider_wrong_type', ...why } },
      ...{ dispatched: true, retryable: false },
    },
    undefined,
  );

/** A response that broke off after its head had arrived. */
export const cutAnswer = (cause?: unknown): ModelFailure => brokenAnswer('cut', { cause });

/** A refusal by the provider. The provider's own text in it is bounded and redacted. */
const refused = (why: Cause, details: Details): ModelFailure =>
  create(
    { reason: 'provider_error', why, dispatched: true, refused: true, retryable: false, ...details },
    undefined,
  );

/** Vendors' codes for failures that no retry can change, with any status. */
const FINAL_CODES = new Set([
  'insufficient_quota',
  'exceeded_current_quota_error',
  'billing_hard_limit_reached',
  'invalid_api_key',
  'API_KEY_INVALID',
]);
/** Vendors' codes for failures that a retry may change. Errors within a stream have no status. */
const TRANSIENT_CODES =
  /overloaded|rate_limit|api_error|server_error|timeout|unavailable|internal|^(?:408|409|425|429|5\d\d)$/;

const isTransientStatus = (status: number): boolean =>
  status >= 500 || status === 498 || status === 408 || status === 409 || status === 425 || status === 429;

const isRetryable = (refusal: HttpRefusal, codes: readonly string[]): boolean => {
  const advice = refusal.headers['x-should-retry'];
  if (advice === 'true' || advice === 'false') return advice === 'true';
  return isTransientStatus(refusal.status) && !codes.some((code) => FINAL_CODES.has(code));
};

/** Destination of a call, as its errors name it. */
export interface CallTarget extends ConnectionTarget {
  /** Origin and path, without credentials and query. */
  readonly endpoint: string;
  readonly model: string;
}

/** LiteLLM without a database says `no_db_connection` to any key but its own. */
const REFUSED_KEY =
  /^(?:401|403|invalid_api_key|API_KEY_\w+|authentication_error|permission_error|no_db_connection)$/;
const NO_CREDIT =
  /^(?:402|insufficient_quota|exceeded_current_quota_error|billing_hard_limit_reached|billing_error)$/;
const NOT_FOUND = /^(?:404|model_not_found|not_found_error)$/;

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
];
const saidCodes = (message: string): string[] => {
  const text = message.slice(0, MAX_ERROR_MESSAGE).toLowerCase();
  return SAYINGS.filter(([words]) => text.includes(words)).map(([, code]) => code);
};

/** Returns the code of the remedy for a refusal that no retry can change; empty without one. */
const adviceFor = (
  { status, endpoint }: { readonly status: number; readonly endpoint: string },
  codes: readonly string[],
  message: string,
): string => {
  const reasons = [...codes, ...saidCodes(message), String(status)];
  const is = (pattern: RegExp): boolean => reasons.some((reason) => pattern.test(reason));
  const hasNoVersion = status === 404 && !/\/v\d/.test(endpoint);
  if (is(NO_CREDIT)) return 'no_credit';
  if (is(REFUSED_KEY)) return 'refused_key';
  if (is(NOT_FOUND)) return hasNoVersion ? 'no_version' : 'not_found';
  if (status >= 300 && status < 400) return 'redirect';
  return isTransientStatus(status) ? '' : 'not_accepted';
};

type Refused = Extract<Cause, { kind: 'provider_refused' }>;

const MAX_ENDPOINT = 160;
/** Length of the part of a refusal in which a parameter is looked for. */
const MAX_REFUSAL = 4_000;

/**
 * Returns the address to which a response points elsewhere, without what may be a secret: user,
 * password and query. Null for a response without one, and empty for an address that is no URL.
 */
const redirectTarget = ({ status, headers }: HttpRefusal, endpoint: string): string | null => {
  const { location } = headers;
  if (status < 300 || status > 399 || typeof location !== 'string') return null;
  const url = URL.parse(location, endpoint);
  return url === null ? '' : `${url.origin}${url.pathname}`;
};

/** Returns the cause of a refusal, with as much of the provider's text as fits. */
const refusalCause = (
  { status, form, said }: Pick<Refused, 'status' | 'form' | 'said'>,
  codes: readonly string[],
  { endpoint, model }: CallTarget,
): Cause => {
  const where = {
    model: toOneLine(model).slice(0, MAX_ENDPOINT),
    endpoint: endpoint.slice(0, MAX_ENDPOINT),
  };
  const advice = adviceFor({ status, endpoint }, codes, said);
  const cause: Refused = { kind: 'provider_refused', status, form, said: '', advice, ...where };
  const room = MAX_ERROR_MESSAGE - textOf({ ...cause, said: ' ' }).length;
  return { ...cause, said: clipLine(said, room) };
};

/**
 * Creates the failure for an HTTP error: the provider's own message, redacted and bounded, and what
 * to do about it.
 */
export const refusalFailure = (
  refusal: HttpRefusal,
  target: CallTarget,
  redact: Redact,
  now: number,
): ModelFailure => {
  const redirect = redirectTarget(refusal, target.endpoint);
  const { message = '', codes, form: bodyForm } = readErrorBody(refusal.body);
  const form = redirect === null ? bodyForm : 'redirect';
  const { status } = refusal;
  return refused(refusalCause({ status, form, said: redact(redirect ?? message) }, codes, target), {
    status,
    refusal: redact(clipLine(refusal.body, MAX_REFUSAL)),
    retryable: isRetryable(refusal, codes),
    retryAfterMs: retryAfterMs(refusal.headers, now),
  });
};

/**
 * Creates the failure for an error event of a stream that began with 200. It is a refusal only
 * before a part of the answer: the vendor may bill that part.
 */
export const streamedFailure = (
  body: unknown,
  redact: Redact,
  { hasBegun }: { readonly hasBegun: boolean },
): ModelFailure => {
  const codes = codesOf(body);
  const message = messageOf(body) ?? 'without a message';
  return refused(
    { kind: 'provider_stream_error', said: toOneLine(redact(message)) },
    {
      refused: !hasBegun,
      retryable: codes.length === 0 || codes.some((code) => TRANSIENT_CODES.test(code)),
      refusal: redact(clipLine([message, ...codes].join(' '), MAX_REFUSAL)),
      status: codes.map(Number).find((code) => code >= 400 && code <= 599),
    },
  );
};

/** Adds the usage that the provider had reported to a failure, or the input without the output. */
export const withUsage = (
  failure: ModelFailure,
  usage: ModelUsage | null,
  reportedInput: ReportedInput | null,
): ModelFailure => {
  if (failure.usage !== undefined || !failure.dispatched) return failure;
  const { cause } = failure;
  if (usage !== null) return create({ ...failure, usage }, cause);
  if (reportedInput === null || failure.refused) return failure;
  return create({ ...failure, reportedInput }, cause);
};

/** Adds the id by which the provider tells the usage of a failed call later. */
export const withGeneration = (failure: ModelFailure, generationId: string | null): ModelFailure => {
  const isKnown = failure.usage !== undefined || failure.refused === true;
  if (generationId === null || isKnown || !failure.dispatched) return failure;
  return create({ ...failure, message: failure.message, generationId }, failure.cause);
};

/**
 * Converts an error of a call into a `ModelFailure`. A cancellation wins over every other failure,
 * but a provider that has refused the call bills nothing.
 */
export const toModelFailure = (
  error: unknown,
  call: { readonly failure: ModelFailure | null; readonly dispatched: boolean },
  redact: Redact,
): ModelFailure => {
  if (call.failure?.reason === 'cancelled') {
    const isRefused = error instanceof ModelFailure && error.refused === true;
    return isRefused ? create({ ...call.failure, refused: true }, error) : call.failure;
  }
  if (error instanceof ModelFailure) return error;
  if (call.failure !== null) return call.failure;
  if (error instanceof SyntaxError) return brokenAnswer('not_json', { cause: new Error(error.name) });
  return brokenAnswer('unreadable', {
    dispatched: call.dispatched,
    retryable: false,
    // The error's own properties may quote a header; only its redacted text is kept.
    cause: new Error(
      error instanceof Error ? toOneLine(redact(`${error.name}: ${error.message}`)) : 'unknown',
    ),
  });
};
