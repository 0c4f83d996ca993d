/**
 * Runs one piece of work after another, in the order of the calls. A failure does not stop the ones
 * behind it.
 */
export type SerialQueue = <T>(work: () => Promise<T>) => Promise<T>;

export const createSerialQueue = (): SerialQueue => {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const run = last.then(work, work);
    last = run.catch(() => undefined);
    return run;
  };
};

/**
 * Runs work of different keys concurrently, up to a limit, and work of one key one after another.
 */
export interface KeyedQueue {
  /** Resolves once fewer pieces of work than the limit have been started. */
  waitForCapacity(): Promise<void>;
  /**
   * Starts `work` behind earlier work of the same key; at once when `key` is undefined. `work` must
   * not reject.
   */
  run(key: string | undefined, work: () => Promise<void>): void;
  /** Resolves once everything that was started has ended. */
  waitUntilIdle(): Promise<void>;
  readonly size: number;
}

export const createKeyedQueue = (limit: number): KeyedQueue => {
  const lastOfKey = new Map<string, Promise<void>>();
  const waiting: (() => void)[] = [];
  const running = new Set<Promise<void>>();

  const finished = (key: string | undefined, done: Promise<void>): void => {
    running.delete(done);
    if (key !== undefined && lastOfKey.get(key) === done) lastOfKey.delete(key);
    waiting.shift()?.();
  };

  return {
    waitForCapacity: async () => {
      while (running.size >= limit) await new Promise<void>((resolve) => waiting.push(resolve));
    },
    run: (key, work) => {
      const before = key === undefined ? undefined : lastOfKey.get(key);
      const done: Promise<void> = (before ? before.then(work) : work()).then(() => finished(key, done));
      running.add(done);
      if (key !== undefined) lastOfKey.set(key, done);
    },
    waitUntilIdle: async () => {
      while (running.size > 0) await Promise.all(running);
    },
    get size() {
      return running.size;
    },
  };
};
