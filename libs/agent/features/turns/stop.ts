import { setTimeout as sleep } from 'node:timers/promises';
import { isAppError } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';

/**
 * Why work is stopped: its turn was cancelled; the session is another process's now; this process ends;
 * the attempt has had its time.
 */
export type StopReason = 'cancelled' | 'lost' | 'draining' | 'deadline';

/** Thrown where work is stopped; the driver's loop decides what is recorded. */
export class Stopped extends Error {
  constructor(readonly reason: StopReason) {
    super(`stopped: ${reason}`);
    this.name = 'Stopped';
  }
}

const stopOf = (signal: AbortSignal): Stopped => new Stopped(signal.reason as StopReason);

export const throwIfStopped = (signal: AbortSignal): void => {
  if (signal.aborted) throw stopOf(signal);
};

/** Settles as the work does, or throws `Stopped` at once when the signal says so; the work's own end is left to itself. */
export const unlessStopped = async <T>(work: Promise<T>, signal: AbortSignal): Promise<T> => {
  if (signal.aborted) {
    work.catch(() => undefined);
    throw stopOf(signal);
  }
  let stop: () => void = () => undefined;
  const stopped = new Promise<never>((_, reject) => {
    stop = () => reject(stopOf(signal));
    signal.addEventListener('abort', stop, { once: true });
  });
  try {
    return await Promise.race([work, stopped]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
};

/** Settles as the work does; once the signal says stop, the work has `graceMs` to end by itself, then `Stopped` is thrown. */
export const orAbandoned = async <T>(work: Promise<T>, signal: AbortSignal, graceMs: number): Promise<T> => {
  const abandoned = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const stop = (): void => {
    timer = setTimeout(() => abandoned.abort(signal.reason), graceMs);
  };
  signal.addEventListener('abort', stop, { once: true });
  try {
    return await unlessStopped(work, abandoned.signal);
  } finally {
    signal.removeEventListener('abort', stop);
    clearTimeout(timer);
  }
};

/** Waits; throws `Stopped` when the signal says so. */
export const waitFor = async (ms: number, signal: AbortSignal): Promise<void> => {
  try {
    await sleep(ms, undefined, { signal });
  } catch (error) {
    if (!signal.aborted) throw error;
    throw stopOf(signal);
  }
};

const FIRST_WAIT_MS = 50;
const LONGEST_WAIT_MS = 1_000;

/**
 * Asks until whoever is asked is there: accepted work waits for services that are down, for as long as it takes.
 * What is not transient is thrown, and so is `Stopped`.
 */
export const untilAnswered = async <T>(
  ask: () => Promise<T>,
  signal: AbortSignal,
  logger: Logger,
): Promise<T> => {
  for (let wait = FIRST_WAIT_MS; ; wait = Math.min(LONGEST_WAIT_MS, wait * 2)) {
    try {
      return await unlessStopped(ask(), signal);
    } catch (error) {
      if (!isAppError(error) || error.kind !== 'transient') throw error;
      // Once a wait, not once a try: an outage has many turns waiting.
      if (wait === FIRST_WAIT_MS) logger.warn({ err: error }, 'a turn waits for a service');
    }
    await waitFor(wait, signal);
  }
};
