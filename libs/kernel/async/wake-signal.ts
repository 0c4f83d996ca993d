/**
 * A wait that `wake` ends early. One `wake` without a waiter is remembered and ends the next wait
 * at once.
 */
export interface WakeSignal {
  readonly wake: () => void;
  /** Resolves to true if `wake` ended the wait. */
  wait(maxMs: number): Promise<boolean>;
}

export const createWakeSignal = (): WakeSignal => {
  let woken = false;
  let end: (() => void) | undefined;
  return {
    wake: () => {
      woken = true;
      end?.();
    },
    wait: async (maxMs) => {
      if (!woken)
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, maxMs);
          end = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      end = undefined;
      const wasWoken = woken;
      woken = false;
      return wasWoken;
    },
  };
};
