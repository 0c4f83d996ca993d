import { setTimeout as sleep } from 'node:timers/promises';
import { healthContract } from '@antiphon/contracts/messaging';
import { isAppError, transient } from '@antiphon/kernel';
import type { AppError } from '@antiphon/kernel';
import type { RequestClient } from '@antiphon/messaging';

/** Between looks at whether any sandbox process is alive, while answers are awaited. */
const PROBE_MS = 250;

const sandboxHealth = healthContract('sandbox');

/** Notices that a request can no longer be answered: NATS says nothing when the process that has it dies. */
export interface SandboxWatch {
  /** Calls back, once, when no sandbox process is there at all. Answers how to stop watching. */
  onGone(listener: (error: AppError) => void): () => void;
}

/** One look for all calls of the process, and none while no call is under way for longer than that. */
export const createSandboxWatch = (requests: RequestClient): SandboxWatch => {
  const listeners = new Set<(error: AppError) => void>();
  let watching = false;

  const isGone = async (): Promise<boolean> => {
    try {
      await requests.request(sandboxHealth, {});
      return false;
    } catch (error) {
      // Anything else says that somebody is there, or nothing at all.
      return isAppError(error) && error.code === 'MESSAGING.NO_RESPONDERS';
    }
  };
  const watch = async (): Promise<void> => {
    let missed: typeof listeners = new Set();
    for (await sleep(PROBE_MS); listeners.size > 0; await sleep(PROBE_MS)) {
      const asked = new Set(listeners);
      const gone = await isGone();
      // Twice in a row: one that ends in good order takes nothing more, but answers what it has.
      const over = gone ? [...asked].filter((listener) => missed.has(listener)) : [];
      missed = gone ? asked : new Set();
      const error = transient('SANDBOX.LOST', 'the sandbox went away during the call');
      for (const listener of over) if (listeners.delete(listener)) listener(error);
    }
    watching = false;
  };
  return {
    onGone: (listener) => {
      listeners.add(listener);
      if (!watching) {
        watching = true;
        void watch();
      }
      return () => void listeners.delete(listener);
    },
  };
};
