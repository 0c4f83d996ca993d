/** A value at a time, ms. It is null where nothing is known, which is a gap in the line. */
export interface Point {
  readonly at: number;
  readonly value: number | null;
}

const MINUTE_MS = 60_000;
/** Time that the readings of this tab cover, ms. */
export const SPAN_MS = 30 * MINUTE_MS;
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
