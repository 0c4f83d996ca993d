/**
 * Starts suspicious work alone: work that was taken up after processes were lost, and that may be
 * the reason. If it ends this process, no other suspicious work had been started.
 */
export interface TrialLane {
  /**
   * Waits for earlier work to leave, or to have run for the time of a trial. Resolves with the
   * function that leaves. Rejects with the reason of the signal.
   */
  enter(signal?: AbortSignal): Promise<() => void>;
}

/** Time after which work no longer holds the lane, ms. */
const TRIAL_MS = 2_000;

export const createTrialLane = (trialMs = TRIAL_MS): TrialLane => {
  let last: Promise<unknown> = Promise.resolve();
  return {
    enter: async (signal) => {
      const before = last;
      const trial = Promise.withResolvers<void>();
      last = before.then(() => trial.promise);
      await before;
      if (signal?.aborted) {
        trial.resolve();
        throw signal.reason;
      }
      const timer = setTimeout(trial.resolve, trialMs);
      return () => {
        clearTimeout(timer);
        trial.resolve();
      };
    },
  };
};

/** The lane of this process: suspicious work of all kinds but turns is started in it. */
export const PROCESS_LANE: TrialLane = createTrialLane();
