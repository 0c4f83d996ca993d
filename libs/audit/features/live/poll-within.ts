import { sleep } from '@antiphon/kernel';

/** Reads until `isEnough` or until the time is over. Returns the last value. */
export type Poll = <T>(read: () => Promise<T>, isEnough: (value: T) => boolean) => Promise<T>;

const POLL_MS = 250;

/**
 * Creates a poll with a deadline. The engines change while they are compared with the log, so only
 * a difference that lasts longer than `patienceMs` is reported.
 */
export const pollWithin =
  (patienceMs: number): Poll =>
  async (read, isEnough) => {
    const deadline = performance.now() + patienceMs;
    for (;;) {
      const value = await read();
      if (isEnough(value) || performance.now() >= deadline) return value;
      await sleep(POLL_MS);
    }
  };
