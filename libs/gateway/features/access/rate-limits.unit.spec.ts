import { describe, expect, it } from '@jest/globals';
import type { Principal } from '@antiphon/contracts/identity';
import { LOCAL_OPERATOR } from './authenticator.js';
import { RateLimits } from './rate-limits.js';

const keyOf = (keyId: string): Principal => ({ ...LOCAL_OPERATOR, caller: `key/${keyId}`, keyId });
const clock = { at: 0, now: () => clock.at };
const create = (more = {}) =>
  new RateLimits(
    { requestsPerSecond: 2, framesPerSecond: 2, bytesPerSecond: 100, signIns: 0, ...more },
    clock,
  );

/** Returns the number of calls until the first refusal, at most 1,000. */
const allowed = (work: () => void): number => {
  for (let count = 0; count < 1_000; count++)
    try {
      work();
    } catch {
      return count;
    }
  return 1_000;
};

const errorOf = (work: () => void): unknown => {
  try {
    work();
  } catch (error) {
    return error;
  }
  return undefined;
};

describe('RateLimits', () => {
  it('allow a burst of ten seconds of requests to each key, then the rate', () => {
    const limits = create();
    expect(allowed(() => limits.chargeRequest(keyOf('one')))).toBe(20);
    expect(allowed(() => limits.chargeRequest(keyOf('two')))).toBe(20);
    clock.at += 3_000;
    expect(allowed(() => limits.chargeRequest(keyOf('one')))).toBe(6);
  });

  it('name the resource and the seconds to wait', () => {
    const limits = create();
    limits.chargeFrame(keyOf('one'), 1_500);
    expect(errorOf(() => limits.chargeFrame(keyOf('one'), 1))).toMatchObject({
      code: 'GATEWAY.RATE_LIMITED',
      message: 'this key is over its limit of bytes',
      data: { retryAfterSeconds: 5 },
    });
  });

  it('refuse a request after bytes that were over the limit', () => {
    const limits = create();
    limits.chargeBytes(keyOf('one'), 1_001);
    expect(() => limits.chargeRequest(keyOf('one'))).toThrow('limit of bytes');
  });

  it('limit frames apart from requests', () => {
    const limits = create();
    expect(allowed(() => limits.chargeFrame(keyOf('one'), 1))).toBe(20);
    expect(() => limits.chargeRequest(keyOf('one'))).not.toThrow();
  });

  it('count a key and its sessions together, for requests, frames and bytes', () => {
    const limits = create();
    const sessions = Array.from({ length: 30 }, (_, i) => ({ ...keyOf('one'), keyId: `session${i}` }));
    let next = 0;
    const any = (): Principal => [keyOf('one'), ...sessions][next++ % 31]!;
    expect(allowed(() => limits.chargeRequest(any()))).toBe(20);
    expect(allowed(() => limits.chargeFrame(any(), 0))).toBe(20);
    clock.at += 10_000;
    limits.chargeBytes(sessions[0]!, 5_000);
    expect(() => limits.chargeRequest(sessions[1]!)).toThrow('limit of bytes');
  });

  it('count requests without a credential by their address', () => {
    const limits = create();
    expect(allowed(() => limits.chargeAddress('10.0.0.1'))).toBe(20);
    expect(allowed(() => limits.chargeAddress('10.0.0.2'))).toBe(20);
    expect(() => limits.chargeRequest(keyOf('10.0.0.1'))).not.toThrow();
  });

  it('leave the operator’s own programs and a limit of 0 unlimited', () => {
    expect(allowed(() => create().chargeRequest(LOCAL_OPERATOR))).toBe(1_000);
    const unlimited = create({ requestsPerSecond: 0, bytesPerSecond: 0 });
    expect(allowed(() => unlimited.chargeRequest(keyOf('one')))).toBe(1_000);
  });
});
