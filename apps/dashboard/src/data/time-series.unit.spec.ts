import { describe, expect, it } from '@jest/globals';
import {
  extentOf,
  keepRecent,
  MAX_POINTS,
  MINUTES,
  ratesOf,
  SPAN_MS,
  sumByMinute,
  withGaps,
  type Point,
} from './time-series.js';

const NOW = Date.parse('2026-11-25T12:00:00Z');
const MINUTE = 60_000;
/** Returns readings that are 10 s apart. */
const every10s = (...values: readonly (number | null)[]): readonly Point[] =>
  values.map((value, index) => ({ at: NOW + index * 10_000, value }));
const valuesOf = (points: readonly Point[]): readonly (number | null)[] => points.map(({ value }) => value);

describe('the rate of a counter', () => {
  it('is its increase per minute, at the later of two readings', () => {
    expect(ratesOf(every10s(100, 102, 102, 103))).toEqual([
      { at: NOW + 10_000, value: 12 },
      { at: NOW + 20_000, value: 0 },
      { at: NOW + 30_000, value: 6 },
    ]);
  });

  it('counts the time that passed, not the time that was planned', () => {
    const late = [
      { at: NOW, value: 0 },
      { at: NOW + 12_000, value: 1 },
    ];
    expect(valuesOf(ratesOf(late))).toEqual([5]);
  });

  it('is unknown after a restart of the counter, and known again from the next reading', () => {
    expect(valuesOf(ratesOf(every10s(500, 0, 1)))).toEqual([null, 6]);
  });

  it('is unknown after a reading that failed or is missing, or at the same time', () => {
    expect(valuesOf(ratesOf(every10s(1, null, 3, 4)))).toEqual([null, null, 6]);
    const [first, , , , fifth] = every10s(1, 2, 3, 4, 5);
    if (!first || !fifth) throw new Error('no readings');
    expect(valuesOf(ratesOf([first, fifth]))).toEqual([null]);
    expect(valuesOf(ratesOf([first, { ...first, value: 2 }]))).toEqual([null]);
    expect(ratesOf([first])).toEqual([]);
    expect(ratesOf([])).toEqual([]);
  });
});

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

describe('the sums by minute', () => {
  const sum = (since: number, ...ages: readonly number[]) =>
    sumByMinute(
      ages.map((age) => ({ at: NOW - age, amount: 1 })),
      { since, until: NOW },
    );

  it('have each amount once, in the minute that ends at or after it', () => {
    const points = sum(0, 0, 59_999, MINUTE, 29 * MINUTE, 30 * MINUTE - 1);
    expect(points).toHaveLength(MINUTES);
    expect([points[0]?.value, points.at(-2)?.value, points.at(-1)?.value]).toEqual([2, 1, 2]);
    expect([points[0]?.at, points.at(-1)?.at]).toEqual([NOW - 29 * MINUTE, NOW]);
  });

  it('leave out what is older than 30 minutes, or ahead of the read', () => {
    expect(extentOf(sum(0, 30 * MINUTE, 31 * MINUTE, -1))?.sum).toBe(0);
  });

  it('are unknown for a minute that began before the known time', () => {
    const points = sum(NOW - 2.5 * MINUTE, 1_000, 70_000);
    expect(valuesOf(points).slice(-4)).toEqual([null, null, 1, 1]);
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
