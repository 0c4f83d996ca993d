import { ModelFailure, type ModelFailureDetails, type ModelUsage } from '@antiphon/agent-domain';

/** Texts of the seeds, verbatim. */
export const UNREACHABLE = 'provider unreachable';
export const TIMED_OUT = 'provider timeout';

type Details = Partial<ModelFailureDetails> & { readonly cause?: unknown };

const make = (details: ModelFailureDetails, cause: unknown): ModelFailure =>
  new ModelFailure(details, cause === undefined ? {} : { cause });

/** No connection, or one that broke before an answer began. */
export const unreachable = (dispatched: boolean, cause?: unknown): ModelFailure =>
  make({ reason: 'provider_unreachable', message: UNREACHABLE, dispatched, retryable: true }, cause);

export const timedOut = (dispatched: boolean, waitedFor: string): ModelFailure =>
  make(
    { reason: 'provider_timeout', message: TIMED_OUT, dispatched, retryable: true },
    new Error(`waited for ${waitedFor}`),
  );

export const cancelled = (dispatched: boolean): ModelFailure =>
  make({ reason: 'cancelled', message: 'cancelled', dispatched, retryable: false }, undefined);

/** What came back is not what the vendor's format promises; nothing of it may run. */
export const brokenAnswer = (message: string, details: Details = {}): ModelFailure => {
  const { cause, ...rest } = details;
  return make({ reason: 'provider_protocol', message, dispatched: true, retryable: true, ...rest }, cause);
};

/** An answer that broke off after its head had arrived. */
export const cutAnswer = (cause?: unknown): ModelFailure =>
  brokenAnswer('the provider closed the connection before its answer was complete', { cause });

/** The provider said no; `message` is its own, already bounded and without secrets. */
export const refused = (message: string, details: Details = {}): ModelFailure => {
  const { cause, ...rest } = details;
  return make({ reason: 'provider_error', message, dispatched: true, retryable: false, ...rest }, cause);
};

/** The same failure with what the provider had said it used. */
export const withUsage = (failure: ModelFailure, usage: ModelUsage | null): ModelFailure =>
  usage === null || failure.usage !== undefined || !failure.dispatched
    ? failure
    : make({ ...failure, message: failure.message, usage }, failure.cause);
