/** Those who wait until a position that only grows has reached theirs. */
export interface PositionWaiters {
  position(): number;
  waiting(): boolean;
  reached(position: number): void;
  until(position: number): Promise<void>;
  /** Rejects who waits now and who comes later. */
  refuse(error: Error): void;
}

export const createWaiters = (): PositionWaiters => {
  let current = 0;
  let refusal: Error | undefined;
  const waiting = new Set<{ position: number; resolve: () => void; reject: (error: Error) => void }>();
  return {
    position: () => current,
    waiting: () => waiting.size > 0,
    reached: (position) => {
      current = Math.max(current, position);
      for (const waiter of waiting)
        if (waiter.position <= current) {
          waiting.delete(waiter);
          waiter.resolve();
        }
    },
    until: (position) =>
      new Promise((resolve, reject) => {
        if (position <= current) resolve();
        else if (refusal) reject(refusal);
        else waiting.add({ position, resolve, reject });
      }),
    refuse: (error) => {
      refusal = error;
      for (const waiter of waiting) waiter.reject(error);
      waiting.clear();
    },
  };
};
