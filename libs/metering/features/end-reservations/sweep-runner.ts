import { contextFrom, runWithContext } from '@antiphon/observability';
import type { Logger } from '@antiphon/observability';
import type { EndReservations } from './end-reservations.js';

export interface SweepRunner {
  start(): void;
  /** Waits for a sweep that is at work. */
  stop(): Promise<void>;
}

/** Sweeps every `everyMs`, one sweep at a time; a failed one is logged and tried again at the next turn. */
export const createSweepRunner = (
  endReservations: Pick<EndReservations, 'sweep'>,
  logger: Logger,
  everyMs: number,
): SweepRunner => {
  let timer: NodeJS.Timeout | undefined;
  let working: Promise<void> = Promise.resolve();
  let stopped = false;

  const sweep = async (): Promise<void> => {
    try {
      const ended = await endReservations.sweep();
      if (ended > 0) logger.info({ ended }, 'expired reservations were ended');
    } catch (error) {
      logger.error({ err: error }, 'the sweep of expired reservations failed');
    }
  };
  const schedule = (): void => {
    if (stopped) return;
    timer = setTimeout(() => {
      working = runWithContext(contextFrom('metering'), sweep).finally(schedule);
    }, everyMs);
    timer.unref();
  };
  return {
    start: schedule,
    stop: async () => {
      stopped = true;
      clearTimeout(timer);
      await working;
    },
  };
};
