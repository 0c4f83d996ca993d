import { describe, expect, it } from '@jest/globals';
import { bearerToken, createTokenGate } from './token-gate.js';

const clockAt = (start: number) => {
  const clock = { at: start, now: () => clock.at };
  return clock;
};

describe('TokenGate', () => {
  it('accepts its token and nothing else', () => {
    const gate = createTokenGate('s3cret', clockAt(0));
    expect(['s3cret', 's3cre', 's3cret ', '', 'S3CRET'].map((token) => gate.accepts(token))).toEqual([
      true,
      false,
      false,
      false,
      false,
    ]);
  });

  it('requires no token if none is configured, and then accepts none', () => {
    const gate = createTokenGate(null, clockAt(0));
    expect(gate.required).toBe(false);
    expect(gate.accepts('')).toBe(false);
  });

  it('limits an address after ten failures in a minute, and no other address', () => {
    const clock = clockAt(1_000_000);
    const gate = createTokenGate('t', clock);
    for (let i = 0; i < 10; i++) gate.recordFailure('10.0.0.1');
    expect(gate.retryAfterSeconds('10.0.0.1')).toBe(60);
    expect(gate.retryAfterSeconds('10.0.0.2')).toBe(0);
    clock.at += 60_000;
    expect(gate.retryAfterSeconds('10.0.0.1')).toBe(0);
  });
});

describe('bearerToken', () => {
  it('returns the token of a valid header and undefined otherwise', () => {
    expect(bearerToken('Bearer abc')).toBe('abc');
    for (const header of [undefined, '', 'Bearer ', 'Basic abc', 'Bearer a b', 'Bearer a\n'])
      expect([header, bearerToken(header)]).toEqual([header, undefined]);
  });
});
