import { describe, expect, it } from '@jest/globals';
import { AppError, ERROR_KINDS } from '@antiphon/kernel';
import type { ErrorKind } from '@antiphon/kernel';
import { DEFAULT_ACK_POLICY, decideAck } from './ack-policy.js';

const error = (kind: ErrorKind, data = {}) => new AppError(kind, 'TEST.FAILED', 'failed', { data });
const first = (kind: ErrorKind) => decideAck(DEFAULT_ACK_POLICY, error(kind), 1, 1);

describe('ack policy', () => {
  it.each<[ErrorKind, string]>([
    ['invalid', 'dead-letter'],
    ['unauthenticated', 'dead-letter'],
    ['forbidden', 'dead-letter'],
    ['not_found', 'dead-letter'],
    ['bug', 'dead-letter'],
    ['rejected', 'ack'],
    ['conflict', 'retry'],
    ['transient', 'retry'],
    ['provider', 'retry'],
    ['exhausted', 'retry'],
  ])('maps %s to %s', (kind, action) => {
    expect(first(kind).action).toBe(action);
  });

  it('has a verdict for every kind', () => {
    for (const kind of ERROR_KINDS) expect(first(kind)).toBeDefined();
  });

  it('raises an alert only for a defect of this code', () => {
    expect(first('bug')).toEqual({ action: 'dead-letter', alert: true });
    expect(first('invalid')).toEqual({ action: 'dead-letter', alert: false });
    expect(decideAck(DEFAULT_ACK_POLICY, new Error('odd'), 5, 5)).toEqual({
      action: 'dead-letter',
      alert: true,
    });
    expect(decideAck(DEFAULT_ACK_POLICY, error('conflict'), 5, 5)).toEqual({
      action: 'dead-letter',
      alert: false,
    });
  });

  it('backs off for 1, 5, 30 and 30 seconds', () => {
    const delays = [1, 2, 3, 4].map((n) => decideAck(DEFAULT_ACK_POLICY, error('conflict'), n, n));
    expect(delays).toEqual(
      [1_000, 5_000, 30_000, 30_000].map((delayMs) => ({ action: 'retry', delayMs, excused: false })),
    );
  });

  it('retries without limit while a dependency is down', () => {
    const late = decideAck(DEFAULT_ACK_POLICY, error('transient'), 1_000, 1_000);
    expect(late).toEqual({ action: 'retry', delayMs: 30_000, excused: true });
  });

  it('waits for a quota until its retry time, by default a minute', () => {
    const said = decideAck(DEFAULT_ACK_POLICY, error('exhausted', { retryAfterSeconds: 7 }), 1, 1);
    expect(said).toMatchObject({ delayMs: 7_000, excused: true });
    expect(first('exhausted')).toMatchObject({ delayMs: 60_000 });
  });
});
