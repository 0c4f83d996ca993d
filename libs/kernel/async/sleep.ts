/**
 * Waits for `ms` milliseconds. Rejects with the signal's reason as soon as `signal` aborts.
 * A wait does not keep the process alive when `unref` is set.
 */
export const sleep = (
  ms: number,
  signal?: AbortSignal,
  { unref = false }: { readonly unref?: boolean } = {},
): Promise<void> =>
  new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason as Error);
      return;
    }
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    if (unref) timer.unref();
    signal?.addEventListener('abort', onAbort, { once: true });
  });

/**
 * Runs `work`, waits `everyMs`, and repeats until `signal` aborts. Resolves after the abort; never
 * rejects because of it. An error of `work` ends the loop and rejects.
 */
export const repeatEvery = async (
  work: () => Promise<void>,
  everyMs: number,
  signal: AbortSignal,
): Promise<void> => {
  while (!signal.aborted) {
    await work();
    await sleep(everyMs, signal).catch(() => undefined);
  }
};

/**
 * Waits for the next round of the event loop, so that work that arrives in this round can be
 * batched.
 */
export const nextEventLoopRound = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
