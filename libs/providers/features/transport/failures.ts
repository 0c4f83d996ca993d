import { ModelFailure } from '@antiphon/providers-domain';
import type { ModelFailureDetails, ModelUsage, ReportedInput } from '@antiphon/providers-domain';
import { textOf } from '@antiphon/contracts/causes';
import type { AnswerProblem, Cause } from '@antiphon/contracts/causes';
import type { Redact } from '@antiphon/observability';
import type { ConnectionTarget } from './connection-failures.js';
import { MAX_ERROR_MESSAGE, MAX_RETRY_AFTER_MS, clipLine, codesOf, messageOf } from './error-text.js';
import { readErrorBody, requestedWaitMs, toOneLine } from './error-text.js';
import type { ResponseHeaders } from './error-text.js';
import { adviceFor, isTransient, isTransientStatus } from './refusal-advice.js';

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

/** Vendors' codes for failures that a retry may change. Errors within a stream have no status. */
const TRANSIENT_CODES =
  /overloaded|rate_limit|api_error|server_error|timeout|unavailable|internal|^(?:408|409|425|429|5\d\d)$/;

/** Destination of a call, as its errors name it. */
export interface CallTarget extends ConnectionTarget {
  /** Origin and path, without credentials and query. */
  readonly endpoint: string;
  readonly model: string;
}

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
  refusal: Pick<Refused, 'status' | 'form' | 'said' | 'advice' | 'waitS'>,
  { endpoint, model }: CallTarget,
): Cause => {
  const where = {
    model: toOneLine(model).slice(0, MAX_ENDPOINT),
    endpoint: endpoint.slice(0, MAX_ENDPOINT),
  };
  const cause: Refused = { kind: 'provider_refused', ...refusal, ...where };
  const room = MAX_ERROR_MESSAGE - textOf({ ...cause, said: ' ' }).length;
  return { ...cause, said: clipLine(refusal.said, room) };
};

const isRetryable = ({ status, headers }: HttpRefusal, advice: string): boolean => {
  const said = headers['x-should-retry'];
  return said === 'true' || said === 'false' ? said === 'true' : isTransient(status, advice);
};

/**
 * Creates the failure for an HTTP error. It has the provider's own message, redacted and bounded,
 * the wait that it asks for, and what to do about it.
 */
export const refusalFailure = (
  refusal: HttpRefusal,
  target: CallTarget,
  redact: Redact,
  now: number,
): ModelFailure => {
  const redirect = redirectTarget(refusal, target.endpoint);
  const { message = '', codes, quotas, form: bodyForm } = readErrorBody(refusal.body);
  const form = redirect === null ? bodyForm : 'redirect';
  const { status, headers, body } = refusal;
  const signs = { status, endpoint: target.endpoint, codes: [...codes, ...quotas], message };
  const advice = adviceFor(signs);
  const waitMs = requestedWaitMs(headers, body, now);
  const isWait = waitMs !== undefined && isTransientStatus(status) && advice !== 'no_credit';
  const wait = isWait ? { waitS: Math.ceil(waitMs / 1_000) } : {};
  return refused(refusalCause({ status, form, said: redact(redirect ?? message), advice, ...wait }, target), {
    status,
    refusal: redact(clipLine(body, MAX_REFUSAL)),
    retryable: isRetryable(refusal, advice),
    ...(waitMs === undefined ? {} : { retryAfterMs: Math.min(waitMs, MAX_RETRY_AFTER_MS) }),
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
  const status = codes.map(Number).find((code) => code >= 400 && code <= 599);
  const advice = adviceFor({ status, endpoint: '/v1', codes, message });
  const isFinal = advice === 'quota_used_up';
  return refused(
    { kind: 'provider_stream_error', said: toOneLine(redact(message)), ...(advice === '' ? {} : { advice }) },
    {
      refused: !hasBegun,
      retryable: !isFinal && (codes.length === 0 || codes.some((code) => TRANSIENT_CODES.test(code))),
      refusal: redact(clipLine([message, ...codes].join(' '), MAX_REFUSAL)),
      status,
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
