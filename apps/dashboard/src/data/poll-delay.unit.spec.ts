import { describe, expect, it } from '@jest/globals';
import { pollDelay } from './poll-delay.js';

describe('the delay of the next read', () => {
  it('doubles with each failure in a row, up to two minutes', () => {
    expect([0, 1, 2, 3, 4, 60, 5_000].map(pollDelay)).toEqual([
      ...[10_000, 20_000, 40_000, 80_000],
      ...[120_000, 120_000, 120_000],
    ]);
  });
});
