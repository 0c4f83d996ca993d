/**
 * Reason for stopping a step: its turn was cancelled, another process holds the session, this
 * process shuts down, or the attempt exceeded its deadline.
 */
export type StopReason = 'cancelled' | 'lost' | 'draining' | 'deadline';

/** Error of a stopped step, and reason of the abort signal that stops it. */
export class Stopped extends Error {
  constructor(readonly reason: StopReason) {
    super(`stopped: ${reason}`);
    this.name = 'Stopped';
  }
}

/** Returns why a step was stopped; null if it was not. */
export const stopReasonOf = (signal: AbortSignal): StopReason | null =>
  signal.aborted && signal.reason instanceof Stopped ? signal.reason.reason : null;
