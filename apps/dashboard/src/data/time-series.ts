/** A value at a time, ms. It is null where nothing is known, which is a gap in the line. */
export interface Point {
  readonly at: number;
  readonly value: number | null;
}

/** An amount that the log has recorded at a time, ms. */
export interface Amount {
  readonly at: number;
  readonly amount: number;
}

const MINUTE_MS = 60_000;
/** Number of minutes that a series covers. */
export const MINUTES = 30;
export const SPAN_MS = MINUTES * MINUTE_MS;
/** Maximum number of points in a series, one every 10 s and some more. */
export const MAX_POINTS = 200;
/** Longest time between two reads that follow each other, ms. */
export const MAX_STEP_MS = 25_000;

/** Returns the newest entries of the last 30 minutes. A clock that went back leaves none ahead. */
export const keepRecent = <T extends { readonly at: number }>(
  entries: readonly T[],
  now: number,
): readonly T[] => entries.filter(({ at }) => at > now - SPAN_MS && at <= now).slice(-MAX_POINTS);

/** Returns readings of a level, with a gap after each one whose successor is missing. */
export const withGaps = (readings: readonly Point[]): readonly Point[] =>
  readings.flatMap((reading, index) => {
    const before = readings[index - 1];
    if (before === undefined || reading.at - before.at <= MAX_STEP_MS) return [reading];
    return [{ at: before.at + MAX_STEP_MS, value: null }, reading];
  });

/** Returns the increase per minute between two readings of a counter, or null where none is known. */
const rateBetween = (before: Point, after: Point): number | null => {
  const ms = after.at - before.at;
  if (before.value === null || after.value === null || ms <= 0 || ms > MAX_STEP_MS) return null;
  // A counter that is lower began again: what it counted in between is unknown.
  if (after.value < before.value) return null;
  return Math.round(((after.value - before.value) * MINUTE_MS * 10) / ms) / 10;
};

/** Returns the increase of a counter per minute, at the later one of each two readings. */
export const ratesOf = (readings: readonly Point[]): readonly Point[] =>
  readings.slice(1).map((after, index) => ({
    at: after.at,
    value: rateBetween(readings[index] ?? after, after),
  }));

/** Time for which amounts are known, ms. */
interface Known {
  readonly since: number;
  readonly until: number;
}

/**
 * Returns the sum of the amounts in each of the 30 minutes before `until`, at the end of each. A
 * minute that began before `since` is a gap.
 */
export const sumByMinute = (amounts: readonly Amount[], { since, until }: Known): readonly Point[] => {
  const sums = Array.from({ length: MINUTES }, () => 0);
  for (const { at, amount } of amounts) {
    const index = MINUTES - 1 - Math.floor((until - at) / MINUTE_MS);
    const sum = sums[index];
    if (sum !== undefined && at <= until) sums[index] = sum + amount;
  }
  return sums.map((sum, index) => {
    const at = until - (MINUTES - 1 - index) * MINUTE_MS;
    return { at, value: at - MINUTE_MS < since ? null : sum };
  });
};

/** The figures that a sentence about a series needs. */
export interface Extent {
  readonly latest: number;
  readonly latestAt: number;
  readonly most: number;
  readonly sum: number;
  /** Number of minutes from the first known value to the last one. */
  readonly minutes: number;
}

/** Returns the figures of the known values of a series, or null if none is known. */
export const extentOf = (points: readonly Point[]): Extent | null => {
  const known = points.flatMap(({ at, value }) => (value === null ? [] : [{ at, value }]));
  const [first, last] = [known[0], known.at(-1)];
  if (!first || !last) return null;
  return {
    latest: last.value,
    latestAt: last.at,
    most: Math.max(...known.map(({ value }) => value)),
    sum: known.reduce((sum, { value }) => sum + value, 0),
    minutes: Math.round((last.at - first.at) / MINUTE_MS),
  };
};
