/** Something to wait for, for a time: `wake` ends the wait, and one wake while nobody waits is kept. */
export interface WakeSignal {
  readonly wake: () => void;
  wait(forMs: number): Promise<void>;
}

export const createSignal = (): WakeSignal => {
  let woken = false;
  let end: (() => void) | undefined;
  return {
    wake: () => {
      woken = true;
      end?.();
    },
    wait: async (forMs) => {
      if (!woken)
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, forMs);
          end = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      end = undefined;
      woken = false;
    },
  };
};
