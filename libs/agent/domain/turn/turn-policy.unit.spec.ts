import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { MAX_BACKOFF_MS, backoffMs } from './turn-policy.js';

describe('backoff', () => {
  it('doubles, with jitter downwards', () => {
    expect([1, 2, 3].map((failures) => backoffMs(failures, 0.999_999))).toEqual([
      expect.closeTo(500),
      expect.closeTo(1_000, -1),
      expect.closeTo(2_000, -1),
    ]);
    expect(backoffMs(1, 0)).toBe(250);
  });

  it('waits at least as long as the provider asks for, and never more than a minute', () =>
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 50 }),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        fc.integer({ min: 0, max: 1e9 }),
        (failures, random, retryAfterMs) => {
          const wait = backoffMs(failures, random, retryAfterMs);
          expect(wait).toBeGreaterThanOrEqual(Math.min(retryAfterMs, MAX_BACKOFF_MS));
          expect(wait).toBeLessThanOrEqual(MAX_BACKOFF_MS);
        },
      ),
    ));
});
