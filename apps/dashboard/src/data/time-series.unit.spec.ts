import { describe, expect, it } from '@jest/globals';
import { extentOf, keepRecent, MAX_POINTS, SPAN_MS, withGaps, type Point } from './time-series.js';

const NOW = Date.parse('2026-11-25T12:00:00Z');
/** Returns readings that are 10 s apart. */
const every10s = (...values: readonly (number | null)[]): readonly Point[] =>
  values.map((value, index) => ({ at: NOW + index * 10_000, value }));
const valuesOf = (points: readonly Point[]): readonly (number | null)[] => points.map(({ value }) => value);

describe('a level', () => {
  it('has a gap where a reading is missing, and none where it is only late', () => {
    const [a, b, , , e] = every10s(1, 2, 3, 4, 5);
    if (!a || !b || !e) throw new Error('no readings');
    expect(valuesOf(withGaps([a, b, e]))).toEqual([1, 2, null, 5]);
    const late = { at: b.at + 24_000, value: 3 };
    expect(valuesOf(withGaps([a, b, late]))).toEqual([1, 2, 3]);
  });
});

describe('the kept readings', () => {
  it('are those of 30 minutes, and never more than their bound', () => {
    const entries = Array.from({ length: 5_000 }, (_, index) => ({ at: NOW - index * 1_000 })).toReversed();
    const kept = keepRecent(entries, NOW);
    expect([kept.length, kept.at(-1)?.at]).toEqual([MAX_POINTS, NOW]);
    const old = [{ at: NOW - SPAN_MS }, { at: NOW - SPAN_MS + 1 }];
    expect(keepRecent(old, NOW)).toEqual([{ at: NOW - SPAN_MS + 1 }]);
  });

  it('have none of the time ahead, after the clock of the machine went back', () => {
    expect(keepRecent([{ at: NOW + 1 }, { at: NOW }], NOW)).toEqual([{ at: NOW }]);
  });
});

describe('the extent of a series', () => {
  it('is of its known values', () => {
    expect(extentOf(every10s(null, 4, 9, null, 2, null, 3))).toEqual({
      ...{ latest: 3, latestAt: NOW + 60_000, most: 9, sum: 18, minutes: 1 },
    });
  });

  it('is null if nothing is known', () => {
    expect([extentOf([]), extentOf(every10s(null, null))]).toEqual([null, null]);
  });
});
