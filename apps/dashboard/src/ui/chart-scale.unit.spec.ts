import { describe, expect, it } from '@jest/globals';
import { HEIGHT, pathsOf, mostOf, roundUp, slotsOf, WIDTH } from './chart-scale.js';

const rowsOf = (...values: readonly (number | null)[]) =>
  values.map((value, index) => ({ at: 1_000 + index * 10, values: [value] }));

describe('the scale of a chart', () => {
  it('ends at a round number that is not below any value', () => {
    expect([0, 0.0003, 0.7, 1, 3, 7, 10, 21, 999, 1_000].map(roundUp)).toEqual([
      ...[1, 0.0005, 1, 1, 5, 10, 10, 50, 1_000, 1_000],
    ]);
    expect([roundUp(Number.NaN), roundUp(-1)]).toEqual([1, 1]);
  });

  it('knows the largest value, and none of an empty chart', () => {
    expect([mostOf([]), mostOf(rowsOf(null, 3, 2))]).toEqual([0, 3]);
  });
});

describe('a line', () => {
  it('ends at a gap, and is a dot where a value is alone', () => {
    expect(pathsOf(rowsOf(0, 10, null, 5, null), 0, 10)).toEqual({
      line: `M0 ${HEIGHT}L25 0`,
      dots: 'M75 20h0',
    });
    expect(pathsOf(rowsOf(null), 0, 10)).toEqual({ line: '', dots: '' });
    expect(pathsOf(rowsOf(10), 0, 10)).toEqual({ line: '', dots: `M${WIDTH / 2} 0h0` });
  });
});

describe('the slots of a chart', () => {
  it.each(['line', 'columns'] as const)('of %s cover its width without an overlap', (shape) => {
    for (const count of [1, 2, 30]) {
      const slots = slotsOf(rowsOf(...Array.from({ length: count }, () => 1)), shape);
      let end = 0;
      for (const { x, width } of slots) {
        expect(x).toBeCloseTo(end);
        end = x + width;
      }
      expect(end).toBeCloseTo(WIDTH);
    }
  });
});
