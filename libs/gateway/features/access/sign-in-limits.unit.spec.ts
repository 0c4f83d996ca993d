import { describe, expect, it } from '@jest/globals';
import { isAppError } from '@antiphon/kernel';
import { SignInLimits } from './sign-in-limits.js';

const refusal = (work: () => void): unknown => {
  try {
    work();
  } catch (error) {
    return isAppError(error) ? { code: error.code, ...error.data } : error;
  }
  return null;
};

describe('SignInLimits', () => {
  it('refuse the sign-in after the first ones of a window, with the seconds to wait', () => {
    const clock = { at: 0, now: () => clock.at };
    const limits = new SignInLimits(2, clock);
    limits.charge('address/a', 'key/one');
    clock.at = 100_000;
    limits.charge('address/b', 'key/one');
    const refused = { code: 'GATEWAY.TOO_MANY_SIGN_INS', retryAfterSeconds: 200 };
    expect(refusal(() => limits.charge('address/c', 'key/one'))).toEqual(refused);
    clock.at = 300_000;
    expect(refusal(() => limits.charge('address/c', 'key/one'))).toBeNull();
    expect(refusal(() => limits.charge('address/c', 'key/one'))).toMatchObject({ retryAfterSeconds: 100 });
  });

  it('count an address over all keys, and record nothing for a refused one', () => {
    const limits = new SignInLimits(2, { now: () => 0 });
    limits.charge('address/a', 'key/one');
    limits.charge('address/a', 'key/two');
    for (let i = 0; i < 5; i++) expect(refusal(() => limits.charge('address/a', 'key/three'))).not.toBeNull();
    limits.charge('address/b', 'key/three');
    expect(refusal(() => limits.charge('address/b', 'key/three'))).toBeNull();
  });

  it('have no limit of 0', () => {
    const limits = new SignInLimits(0, { now: () => 0 });
    for (let i = 0; i < 100; i++) limits.charge('key/one');
  });
});
