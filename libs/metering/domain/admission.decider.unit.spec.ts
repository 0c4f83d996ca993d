import { describe, expect, it } from '@jest/globals';
import { decideAdmission, emptyBalance, formatMicroUsd } from '@antiphon/metering-domain';
import type { Balance, ScopeStanding } from '@antiphon/metering-domain';

const price = { inputMicroUsdPerMtok: 1_000_000, outputMicroUsdPerMtok: 2_000_000 };
const ask = (inputBound: number, maxOutputTokens: number, minOutputTokens = 256) => ({
  provider: 'anthropic',
  model: 'claude-sonnet',
  inputBound,
  maxOutputTokens,
  minOutputTokens,
});
const session = (
  limitTokens: number | null,
  limitMicroUsd: number | null,
  balance: Partial<Balance> = {},
): ScopeStanding => ({
  scope: { kind: 'session', key: 'session/s1', limitTokens, limitMicroUsd },
  balance: { ...emptyBalance, ...balance },
});
const day = (limitTokens: number | null, balance: Partial<Balance> = {}): ScopeStanding => ({
  scope: { kind: 'day', key: 'day/2026-11-21', limitTokens, limitMicroUsd: null },
  balance: { ...emptyBalance, ...balance },
});

describe('admission', () => {
  it('grants what was asked for without a limit', () =>
    expect(decideAdmission(ask(1_000, 4_096), [session(null, null)], price)).toEqual({
      granted: true,
      outputBound: 4_096,
      tokens: 5_096,
      microUsd: 9_192,
    }));

  it('grants a bound that fills the limit exactly', () =>
    expect(decideAdmission(ask(500, 500), [session(1_000, null)], null)).toMatchObject({
      granted: true,
      tokens: 1_000,
      microUsd: 0,
    }));

  it('caps the output to what settled and reserved calls have left', () =>
    expect(
      decideAdmission(
        ask(1_000, 4_096),
        [session(10_000, null, { settledTokens: 6_000, reservedTokens: 2_000 })],
        null,
      ),
    ).toMatchObject({ granted: true, outputBound: 1_000, tokens: 2_000 }));

  it('reserves each input token at its dearest price', () => {
    const cached = { cacheReadMicroUsdPerMtok: 100_000, cacheWriteMicroUsdPerMtok: 1_250_000 };
    expect(decideAdmission(ask(1_000, 500), [session(null, 2_250)], { ...price, ...cached })).toMatchObject({
      granted: true,
      microUsd: 2_250,
    });
    expect(decideAdmission(ask(1_000, 500), [session(null, 2_249)], { ...price, ...cached })).toMatchObject({
      outputBound: 499,
    });
  });

  describe.each([
    ['one micro-dollar left', -1],
    ['a balance at the limit', 0],
    ['a balance one micro-dollar above the limit', 1],
  ])('with %s', (_, over) => {
    const spent = { settledMicroUsd: 600 + over, reservedMicroUsd: 400 };
    const free = { inputMicroUsdPerMtok: 0, outputMicroUsdPerMtok: 0 };

    // @shows U35
    it('refuses a call that costs money, and admits one that costs nothing', () => {
      expect(decideAdmission(ask(10, 10), [session(null, 1_000, spent)], price)).toMatchObject({
        granted: false,
      });
      expect(decideAdmission(ask(10, 10), [session(null, 1_000, spent)], free)).toEqual({
        ...{ granted: true, outputBound: 10, tokens: 20, microUsd: 0 },
      });
    });

    it('admits a call that costs nothing although the limit is frozen, unless it limits tokens', () => {
      const frozen = { ...spent, frozenBy: 'r1' };
      expect(decideAdmission(ask(10, 10), [session(null, 1_000, frozen)], free)).toMatchObject({
        granted: true,
      });
      expect(decideAdmission(ask(10, 10), [session(1_000, 1_000, frozen)], free)).toMatchObject({
        granted: false,
      });
    });
  });

  it('refuses a call without a price, which may cost something, below an overspent limit', () =>
    expect(
      decideAdmission(ask(10, 10), [session(null, 1_000, { settledMicroUsd: 1_001 })], null),
    ).toMatchObject({ granted: false, refusal: { reason: 'unknown_price' } }));

  it('caps the output by money', () =>
    expect(decideAdmission(ask(1_000, 4_096), [session(null, 3_000)], price)).toMatchObject({
      granted: true,
      outputBound: 1_000,
      microUsd: 3_000,
    }));

  it('refuses with the documented text when less than the minimum output is left', () =>
    expect(
      decideAdmission(
        ask(300, 4_096),
        [session(10_000, null, { settledTokens: 9_000, reservedTokens: 500 })],
        null,
      ),
    ).toEqual({
      granted: false,
      refusal: {
        granted: false,
        scope: 'session',
        scopeKey: 'session/s1',
        unit: 'tokens',
        used: 9_500,
        reserved: 500,
        limit: 10_000,
        message: 'token budget exceeded (session: 9500/10000)',
        cause: { kind: 'budget_exceeded', unit: 'tokens', scope: 'session', used: '9500', limit: '10000' },
        reason: 'over_limit',
        resetsAt: null,
      },
    }));

  it('refuses by money in the same style, in dollars', () =>
    expect(
      decideAdmission(ask(1_000, 4_096), [session(null, 1_000_000, { settledMicroUsd: 998_500 })], price),
    ).toEqual({
      granted: false,
      refusal: {
        granted: false,
        scope: 'session',
        scopeKey: 'session/s1',
        unit: 'usd',
        used: 0.9985,
        reserved: 0,
        limit: 1,
        message: 'cost budget exceeded (session: $0.9985/$1.00)',
        cause: { kind: 'budget_exceeded', unit: 'usd', scope: 'session', used: '$0.9985', limit: '$1.00' },
        reason: 'over_limit',
        resetsAt: null,
      },
    }));

  it('refuses when any scope is used up, and names its reset time', () =>
    expect(
      decideAdmission(ask(100, 300), [session(1_000, null), day(5_000, { settledTokens: 4_900 })], null),
    ).toMatchObject({
      refusal: {
        scope: 'day',
        message: 'token budget exceeded (day: 4900/5000)',
        resetsAt: '2026-11-22T00:00:00.000Z',
      },
    }));

  it('accepts a least output above the wish: the wish is enough', () =>
    expect(decideAdmission(ask(10, 16), [session(26, null)], null)).toMatchObject({
      granted: true,
      outputBound: 16,
    }));

  // @shows U34
  it('refuses a model without a price under a money limit, and names the fix', () =>
    expect(decideAdmission(ask(100, 300), [session(null, 1_000_000)], null)).toMatchObject({
      refusal: {
        reason: 'unknown_price',
        unit: 'usd',
        message:
          'no price is set for anthropic/claude-sonnet, which a cost budget needs (session: $0.00/$1.00): add it under [[prices]]',
      },
    }));

  it('refuses in a frozen scope while it has a limit', () => {
    const frozen = { settledTokens: 400, frozenBy: 'r-1' };
    expect(decideAdmission(ask(100, 300), [session(10_000, null, frozen)], null)).toMatchObject({
      refusal: { reason: 'frozen', message: expect.stringContaining('budget frozen (session: 400/10000)') },
    });
    expect(decideAdmission(ask(100, 300), [session(null, null, frozen)], null)).toMatchObject({
      granted: true,
    });
  });

  it('names the limit before the freeze, where both refuse', () =>
    expect(
      decideAdmission(
        ask(400, 300),
        [session(10_000, null, { settledTokens: 9_500, frozenBy: 'r-1' })],
        null,
      ),
    ).toMatchObject({ refusal: { message: 'token budget exceeded (session: 9500/10000)' } }));

  it('refuses when a settlement over its bound left the scope beyond its limit', () =>
    expect(
      decideAdmission(ask(0, 1, 1), [session(null, 100, { settledMicroUsd: 101 })], price),
    ).toMatchObject({
      refusal: { message: 'cost budget exceeded (session: $0.000101/$0.0001)' },
    }));
});

describe('formatMicroUsd', () => {
  it.each([
    [0, '$0.00'],
    [1, '$0.000001'],
    [950_000, '$0.95'],
    [12_340_500, '$12.3405'],
    [2_000_000_000_000, '$2000000.00'],
  ])('%d is %s', (microUsd, text) => expect(formatMicroUsd(microUsd)).toBe(text));
});
