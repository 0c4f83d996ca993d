/** Random choices that a seed repeats: the same seed gives the same sequence in every run. */
export interface SeededRandom {
  /** Returns a whole number in [0, bound). */
  below(bound: number): number;
  /** Returns a whole number in [from, to]. */
  between(from: number, to: number): number;
  pick<T>(list: readonly T[]): T;
}

/** Generates numbers in [0, 1) by mulberry32: 32 bits of state, good enough for schedules. */
const mulberry32 = (seed: number): (() => number) => {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
};

export const createSeededRandom = (seed: number): SeededRandom => {
  const next = mulberry32(seed);
  const below = (bound: number): number => Math.floor(next() * bound);
  return {
    below,
    between: (from, to) => from + below(to - from + 1),
    pick: <T>(list: readonly T[]): T => list[below(list.length)] as T,
  };
};
