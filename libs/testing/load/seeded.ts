/** Chance that a seed repeats: what follows from a seed is the same in every run. */
export interface Chance {
  /** A whole number in [0, bound). */
  below(bound: number): number;
  /** A whole number in [from, to]. */
  between(from: number, to: number): number;
  pick<T>(list: readonly T[]): T;
}

/** mulberry32: 32 bits of state, good enough for schedules. */
const generator = (seed: number): (() => number) => {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
};

export const seeded = (seed: number): Chance => {
  const next = generator(seed);
  const below = (bound: number): number => Math.floor(next() * bound);
  return {
    below,
    between: (from, to) => from + below(to - from + 1),
    pick: <T>(list: readonly T[]): T => list[below(list.length)] as T,
  };
};
