/** Asks until what it hears will do, or patience ends; answers what it heard last. */
export type Settled = <T>(ask: () => Promise<T>, will: (heard: T) => boolean) => Promise<T>;

const PAUSE_MS = 250;

/**
 * What runs is compared with the log while it runs, so that both are a moment apart: only what still differs after
 * `patienceMs` is found.
 */
export const settleWithin =
  (patienceMs: number): Settled =>
  async (ask, will) => {
    const until = performance.now() + patienceMs;
    for (;;) {
      const heard = await ask();
      if (will(heard) || performance.now() >= until) return heard;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  };
