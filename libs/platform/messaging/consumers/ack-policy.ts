import { isAppError } from '@antiphon/kernel';

/** Action on a message whose handler threw, by the error's kind (docs/errors.md). */
export type Verdict =
  /** A rule rejected the message: that is an outcome, and the message is done. */
  | { readonly action: 'ack' }
  /** Redelivers after the delay; an `excused` attempt does not count against the message. */
  | { readonly action: 'retry'; readonly delayMs: number; readonly excused: boolean }
  /** Stores the message with its reason; `alert` marks a defect of this code. */
  | { readonly action: 'dead-letter'; readonly alert: boolean };

export interface AckPolicy {
  /** Failures of the message itself after which it is given up. */
  readonly maxFailures: number;
  /** Backoff delays before further attempts; the last one repeats. */
  readonly backoffMs: readonly number[];
  /** Delay after an exhausted quota whose error has no retry time. */
  readonly exhaustedDelayMs: number;
}

export const DEFAULT_ACK_POLICY: AckPolicy = {
  maxFailures: 5,
  backoffMs: [1_000, 5_000, 30_000],
  exhaustedDelayMs: 60_000,
};

const delayFor = (policy: AckPolicy, failures: number): number =>
  policy.backoffMs[Math.min(failures, policy.backoffMs.length) - 1] ?? 0;

const exhaustedDelay = (policy: AckPolicy, seconds: unknown): number =>
  typeof seconds === 'number' && seconds > 0 ? seconds * 1_000 : policy.exhaustedDelayMs;

/**
 * Decides what to do with a failed message. `failures` counts the failures of the message itself,
 * this one included; `attempts` counts all. An unavailable dependency or an exhausted quota is not
 * the message's failure: it is retried without limit.
 */
export const decideAck = (policy: AckPolicy, error: unknown, failures: number, attempts: number): Verdict => {
  const retryOrGiveUp = (alert: boolean): Verdict =>
    failures >= policy.maxFailures
      ? { action: 'dead-letter', alert }
      : { action: 'retry', delayMs: delayFor(policy, failures), excused: false };
  if (!isAppError(error)) return retryOrGiveUp(true);
  switch (error.kind) {
    case 'invalid':
    case 'unauthenticated':
    case 'forbidden':
    case 'not_found':
      return { action: 'dead-letter', alert: false };
    case 'rejected':
      return { action: 'ack' };
    case 'conflict':
      return retryOrGiveUp(false);
    case 'transient':
    case 'provider':
      return { action: 'retry', delayMs: delayFor(policy, attempts), excused: true };
    case 'exhausted':
      return {
        action: 'retry',
        delayMs: exhaustedDelay(policy, error.data['retryAfterSeconds']),
        excused: true,
      };
    case 'bug':
      return { action: 'dead-letter', alert: true };
  }
};
