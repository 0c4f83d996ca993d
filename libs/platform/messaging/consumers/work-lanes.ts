/** Bounds how much work runs at the same time; work of one lane runs one after another, in order of arrival. */
export interface WorkLanes {
  /** Settles once there is room for more work. */
  room(): Promise<void>;
  /** Begins the work as soon as its lane is free; `lane` undefined: at once. `work` must not throw. */
  run(lane: string | undefined, work: () => Promise<void>): void;
  /** Settles once everything that was begun has ended. */
  idle(): Promise<void>;
  readonly size: number;
}

export const createWorkLanes = (limit: number): WorkLanes => {
  const lanes = new Map<string, Promise<void>>();
  const waiting: (() => void)[] = [];
  const running = new Set<Promise<void>>();

  const finished = (lane: string | undefined, done: Promise<void>): void => {
    running.delete(done);
    if (lane !== undefined && lanes.get(lane) === done) lanes.delete(lane);
    waiting.shift()?.();
  };

  return {
    room: async () => {
      while (running.size >= limit) await new Promise<void>((resolve) => waiting.push(resolve));
    },
    run: (lane, work) => {
      const before = lane === undefined ? undefined : lanes.get(lane);
      const done: Promise<void> = (before ? before.then(work) : work()).then(() => finished(lane, done));
      running.add(done);
      if (lane !== undefined) lanes.set(lane, done);
    },
    idle: async () => {
      while (running.size > 0) await Promise.all(running);
    },
    get size() {
      return running.size;
    },
  };
};
