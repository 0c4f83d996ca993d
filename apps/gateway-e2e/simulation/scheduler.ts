/** Answers each question with a number below `bound`: all chance of a simulation comes from here. */
export type Choose = (bound: number) => number;

/** What a fiber waits for at an await: a fact, at most for so many ticks; nothing: it may go on at any time. */
export type Wait = { readonly until: () => boolean; readonly patience?: number } | undefined;
/** Work of a process, cut at each of its awaits, where anything else may happen first, its process's death too. */
export type Fiber<T = void> = Generator<Wait, T, void>;

export interface Process {
  readonly name: string;
  /** Which life of it this is: a new one knows nothing of the one before. */
  readonly life: number;
  alive: boolean;
  /** It stands still until then, and knows nothing of it. */
  stillUntil: number;
}

interface Running {
  readonly process: Process;
  readonly fiber: Fiber;
  ready: () => boolean;
  giveUpAt: number;
}

export interface Scheduler {
  now(): number;
  spawn(process: Process, fiber: Fiber): void;
  /** Lets one fiber go one await further, time pass if none can; false when nothing will ever happen again. */
  step(): boolean;
  pass(ticks: number): void;
}

const always = (): boolean => true;

/** One thread of time in which fibers take turns by choice. */
export const createScheduler = (choose: Choose): Scheduler => {
  let clock = 0;
  let running: Running[] = [];
  const canGo = ({ process, ready, giveUpAt }: Running): boolean =>
    process.stillUntil <= clock && (ready() || clock >= giveUpAt);
  const advance = (entry: Running): void => {
    const { done, value } = entry.fiber.next();
    if (done) running = running.filter((other) => other !== entry);
    else {
      entry.ready = value?.until ?? always;
      entry.giveUpAt = clock + (value?.patience ?? Infinity);
    }
  };
  const nextTime = (): number =>
    Math.min(
      ...running.map(({ process, giveUpAt }) => (process.stillUntil > clock ? process.stillUntil : giveUpAt)),
    );
  const step = (): boolean => {
    running = running.filter(({ process }) => process.alive);
    const able = running.filter(canGo);
    const chosen = able[choose(Math.max(1, able.length))];
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
    spawn: (process, fiber) => void running.push({ process, fiber, ready: always, giveUpAt: 0 }),
    step,
    pass: (ticks) => void (clock += ticks),
  };
};
