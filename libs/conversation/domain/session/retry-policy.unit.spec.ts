import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { MAX_BACKOFF_MS, backoffMs, maxRetryDelay, retryDelay } from './retry-policy.js';

describe('backoff', () => {
  it('doubles, with jitter below the maximum', () => {
    expect([1, 2, 3].map((failures) => backoffMs(failures, 0.999_999))).toEqual([
      expect.closeTo(500),
      expect.closeTo(1_000, -1),
      expect.closeTo(2_000, -1),
    ]);
    expect(backoffMs(1, 0)).toBe(250);
  });

  it('is at least the retry-after of the provider and at most a minute', () =>
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

const deferred = (tries: number) => ({
  deferred: { tries, reached: 0, since: '2026-11-22T12:00:00.000Z', dueAt: '2026-11-22T12:00:00.000Z' },
});

describe('the retry delay of an unsent tool call', () => {
  const wait = (tries: number, waitedMs: number) =>
    retryDelay(
      { idempotent: false, retry: null, ...deferred(tries) },
      { reason: 'unsent', waitedMs, random: 0 },
    );

  it('is short at first, as long as a killed sandbox needs to serve again, and grows then', () => {
    expect([0, 1, 2, 3, 4, 5].map((tries) => wait(tries, 100))).toEqual(Array(6).fill(125));
    expect([6, 7, 8, 9].map((tries) => wait(tries, 2_000))).toEqual([250, 500, 1_000, 1_000]);
  });

  it('ends after half a minute', () => {
    expect(wait(9, 29_000)).toBe(1_000);
    expect(wait(3, 30_001)).toBeNull();
  });

  it('ends after 40 tries when the clock was put back', () => {
    expect(wait(39, -3_600_000)).toBe(1_000);
    expect(wait(40, -3_600_000)).toBeNull();
  });
});

describe('maxRetryDelay', () => {
  it('is the maximum backoff of the tool, at least that of an unsent call', () => {
    const retry = { maxAttempts: 3, backoffMs: 10, maxBackoffMs: 5_000, onTimeout: false };
    expect(maxRetryDelay({ idempotent: true, retry })).toBe(5_000);
    expect(maxRetryDelay({ idempotent: true, retry: { ...retry, maxBackoffMs: 10 } })).toBe(2_000);
  });
});
