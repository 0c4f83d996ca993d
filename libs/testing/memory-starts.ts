import type { WorkStarts } from '@antiphon/database';

/** Counts of starts in memory, which the processes of a spec share. */
export interface MemoryStarts extends WorkStarts {
  /** Counts by kind and item, without those that are 0. */
  readonly all: ReadonlyMap<string, number>;
}

export const createMemoryStarts = (): MemoryStarts => {
  const all = new Map<string, number>();
  const add = (key: string, number: number): number => {
    const starts = (all.get(key) ?? 0) + number;
    if (starts === 0) all.delete(key);
    else all.set(key, starts);
    return starts;
  };
  return {
    all,
    read: async (kind, item) => all.get(`${kind} ${item}`) ?? 0,
    begin: async (kind, item) => add(`${kind} ${item}`, 1),
    release: async (kind, item) => void add(`${kind} ${item}`, -1),
    end: async (kind, item) => void all.delete(`${kind} ${item}`),
  };
};
