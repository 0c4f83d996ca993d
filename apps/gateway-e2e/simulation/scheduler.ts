/** Returns a number below `bound`. All random choices of a simulation are made by it. */
export type Choose = (bound: number) => number;

/** Wait of a fiber at a `yield`: until a condition or a timeout in ticks. Undefined: no wait. */
export type Wait = { readonly until: () => boolean; readonly timeout?: number } | undefined;
/** Work of a process. Other fibers may run, and its process may die, at each `yield`. */
export type Fiber<T = void> = Generator<Wait, T, void>;

export interface Process {
  readonly name: string;
  /** Number of the process's restart. A restarted process has lost its memory. */
  readonly life: number;
  alive: boolean;
  /** Time until which it is paused, without noticing. */
  pausedUntil: number;
}

interface Running {
  readonly process: Process;
  readonly fiber: Fiber;
  ready: () => boolean;
  timeoutAt: number;
}

export interface Scheduler {
  now(): number;
  spawn(process: Process, fiber: Fiber): void;
  /**
   * Runs one fiber to its next `yield`, or advances the clock when none can run. Returns false at a
   * deadlock.
   */
  step(): boolean;
}

const always = (): boolean => true;

/** Creates a scheduler that runs the fibers of all processes in an order that `choose` decides. */
export const createScheduler = (choose: Choose): Scheduler => {
  let clock = 0;
  let running: Running[] = [];
  const canRun = ({ process, ready, timeoutAt }: Running): boolean =>
    process.pausedUntil <= clock && (ready() || clock >= timeoutAt);
  const advance = (entry: Running): void => {
    const { done, value } = entry.fiber.next();
    if (done) running = running.filter((other) => other !== entry);
    else {
      entry.ready = value?.until ?? always;
      entry.timeoutAt = clock + (value?.timeout ?? Infinity);
    }
  };
  const nextTime = (): number =>
    Math.min(
      ...running.map(({ process, timeoutAt }) =>
        process.pausedUntil > clock ? process.pausedUntil : timeoutAt,
      ),
    );
  const step = (): boolean => {
    running = running.filter(({ process }) => process.alive);
    const runnable = running.filter(canRun);
    const chosen = runnable[choose(Math.max(1, runnable.length))];
    if (chosen) {
      clock++;
      advance(chosen);
      return true;
    }
    const next = nextTime();
    if (next === Infinity) return false;
    clock = next;
    return true;
  };
  return {
    now: () => clock,
    spawn: (process, fiber) => void running.push({ process, fiber, ready: always, timeoutAt: 0 }),
    step,
  };
};
