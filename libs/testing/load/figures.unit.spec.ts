import { describe, expect, it } from '@jest/globals';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkFigure, noiseAllowance, percentile, summarizeRatios } from './figures.js';

describe('percentile', () => {
  it('returns the value below which a part of the values lie', () => {
    const values = Array.from({ length: 100 }, (_, i) => 99 - i);
    expect([0, 0.5, 0.99, 1].map((part) => percentile(values, part))).toEqual([0, 50, 99, 99]);
  });

  it('returns NaN without values', () => expect(percentile([], 0.5)).toBeNaN());
});

describe('noiseAllowance', () => {
  it('is 1 when the control never differs', () =>
    expect(noiseAllowance(Array<number>(16).fill(1), 1.5)).toBe(1));

  it('counts a ratio like its inverse, so that luck does not lower it', () => {
    const [low, high] = [0.8, 1.25].map((ratio) => noiseAllowance(Array<number>(16).fill(ratio), 1.5));
    expect(low).toBeCloseTo(high as number, 9);
    expect(low).toBeGreaterThan(1.1);
  });

  it('grows with the spread of the control, and shrinks with the number of rounds', () => {
    const controls = [0.9, 1, 1.1, 1];
    const few = noiseAllowance(controls, 1.5);
    const many = noiseAllowance(Array.from({ length: 8 }, () => controls).flat(), 1.5);
    expect(few).toBeGreaterThan(many);
    expect(many).toBeGreaterThan(1);
  });

  it('is capped, so that a noisy machine does not pass everything', () =>
    expect(noiseAllowance([0.1, 5, 0.2, 4], 1.5)).toBe(1.5));
});

describe('summarizeRatios', () => {
  it('returns median and quartiles', () =>
    expect(summarizeRatios([1, 2, 3, 4])).toMatchObject({ low: 2, median: 3, high: 4 }));
});

describe('checkFigure', () => {
  const withFile = <T>(use: (path: string) => T): T => {
    const folder = mkdtempSync(join(tmpdir(), 'antiphon-figures-'));
    const path = join(folder, 'figures');
    const before = process.env['ANTIPHON_FIGURES_FILE'];
    process.env['ANTIPHON_FIGURES_FILE'] = path;
    try {
      return use(path);
    } finally {
      if (before === undefined) delete process.env['ANTIPHON_FIGURES_FILE'];
      else process.env['ANTIPHON_FIGURES_FILE'] = before;
      rmSync(folder, { recursive: true });
    }
  };

  it('records a figure within its bound', () =>
    withFile((path) => {
      checkFigure({ what: 'p99', value: 2_000, unit: 'ms', atMost: 3_000 });
      expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual({
        ...{ what: 'p99', figure: '2000 ms', bound: 'at most 3000 ms', ok: true },
      });
    }));

  it.each([
    ['above its maximum', { value: 3.1, atMost: 3 }],
    ['below its minimum', { value: 0.9, atLeast: 1 }],
    ['not a number', { value: Number.NaN, atMost: 3 }],
  ])('records and throws when the figure is %s', (_, figure) =>
    withFile((path) => {
      expect(() => checkFigure({ what: 'ratio', ...figure })).toThrow('out of bound: ratio');
      expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({ what: 'ratio', ok: false });
    }),
  );
});
