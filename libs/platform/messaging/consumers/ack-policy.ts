import { isAppError } from '@antiphon/kernel';

/** What becomes of a message whose handler threw (house style §5). */
export type Verdict =
  /** The rule said no: that is an outcome, and the message is done with. */
  | { readonly action: 'ack' }
  /** Delivered again after the delay; `excused` tries do not count against the message. */
  | { readonly action: 'retry'; readonly delayMs: number; readonly excused: boolean }
  /** Kept aside with its reason; with `alert`, somebody has to look at our code. */
  | { readonly action: 'dead-letter'; readonly alert: boolean };

export interface AckPolicy {
  /** Failures of its own after which a message is given up. */
  readonly maxFailures: number;
  /** Delay before each further try; the last one repeats. */
  readonly backoffMs: readonly number[];
  /** Delay when a quota is used up and nobody said until when. */
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
 * Judges an error. `failures` counts this one and those before it that were the message's own; `tries` counts all.
 * A dependency that is down or a quota that is used up is no fault of the message: it waits, however long.
 */
export const decideAck = (policy: AckPolicy, error: unknown, failures: number, tries: number): Verdict => {
  const counted = (alert: boolean): Verdict =>
    failures >= policy.maxFailures
      ? { action: 'dead-letter', alert }
      : { action: 'retry', delayMs: delayFor(policy, failures), excused: false };
  if (!isAppError(error)) return counted(true);
  switch (error.kind) {
    case 'invalid':
    case 'unauthenticated':
    case 'forbidden':
    case 'not_found':
      return { action: 'dead-letter', alert: false };
    case 'rejected':
      return { action: 'ack' };
    case 'conflict':
      return counted(false);
    case 'transient':
    case 'provider':
      return { action: 'retry', delayMs: delayFor(policy, tries), excused: true };
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
