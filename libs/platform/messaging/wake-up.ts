/** Lets a loop sleep until something happens, or some time has passed. */
export interface WakeUp {
  /** Ends the sleep; called while nobody sleeps, it ends the next one before it begins. */
  wake(): void;
  sleep(ms: number): Promise<void>;
}

export const createWakeUp = (): WakeUp => {
  let pending = false;
  let end: (() => void) | undefined;
  return {
    wake: () => {
      if (end) end();
      else pending = true;
    },
    sleep: async (ms) => {
      if (!pending) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, ms);
          end = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
      end = undefined;
      pending = false;
    },
  };
};
