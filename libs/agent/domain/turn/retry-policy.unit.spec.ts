import { describe, expect, it } from '@jest/globals';
import { maxRetryDelay, retryDelay } from './retry-policy.js';

const deferred = (tries: number) => ({
  deferred: { tries, reached: 0, since: '2026-11-22T12:00:00.000Z', dueAt: '2026-11-22T12:00:00.000Z' },
});

describe('a tool call that reached no tool', () => {
  const wait = (tries: number, waitedMs: number) =>
    retryDelay(
      { idempotent: false, retry: null, ...deferred(tries) },
      { reason: 'unsent', waitedMs, random: 0 },
    );

  it('is tried for half a minute', () => {
    expect(wait(3, 29_000)).toBe(1_000);
    expect(wait(3, 30_001)).toBeNull();
  });

  it('is not tried for ever by a clock that was put back', () => {
    expect(wait(39, -3_600_000)).toBe(1_000);
    expect(wait(40, -3_600_000)).toBeNull();
  });
});

describe('the longest wait of a call', () => {
  it('is what its tool declares, and never below what reaching the sandbox takes', () => {
    const retry = { maxAttempts: 3, backoffMs: 10, maxBackoffMs: 5_000, onTimeout: false };
    expect(maxRetryDelay({ idempotent: true, retry })).toBe(5_000);
    expect(maxRetryDelay({ idempotent: true, retry: { ...retry, maxBackoffMs: 10 } })).toBe(2_000);
  });
});
