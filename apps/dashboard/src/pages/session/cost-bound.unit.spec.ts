import { describe, expect, it } from '@jest/globals';
import type { LogEvent } from '@antiphon/client';
import { boundOf, reservedOf, reservedWith } from './cost-bound.js';

type Scope = Parameters<typeof boundOf>[0][number];

const scope = (kind: Scope['kind'], limits: Partial<Scope>): Scope => ({
  ...{ kind, key: `${kind}/1`, limitTokens: null, limitMicroUsd: null, frozen: false },
  ...{ settledTokens: 10, reservedTokens: 5, settledMicroUsd: 100_000, reservedMicroUsd: 50_000 },
  ...limits,
});
const reserved = (turnId: string, model: string, input: number) =>
  reservedOf({
    data: {
      ...{ turnId, provider: 'p', model, inputBound: 1_000, outputBound: 100, microUsd: 5_000 },
      price: { inputMicroUsdPerMtok: input, outputMicroUsdPerMtok: 10_000_000 },
    },
  } as unknown as LogEvent);

describe('the bound of a cost', () => {
  it('is the least that a budget has left, and all of a limit for a new session', () => {
    expect(boundOf([scope('day', {}), scope('month', {})])).toBeNull();
    const scopes = [scope('day', { limitMicroUsd: 1_000_000 }), scope('session', { limitMicroUsd: 500_000 })];
    expect(boundOf(scopes)).toBe('$0.5000, which a new session has left');
    expect(boundOf([...scopes, scope('agent', { limitTokens: 12, limitMicroUsd: 1 })])).toBe(
      '$0.00, which agent/1 has left, and 0 tokens, which agent/1 has left',
    );
  });

  it('counts the calls on record at the price of the chosen model', () => {
    const all = [
      reserved('t1', 'a', 3_000_000),
      reserved('t2', 'a', 3_000_000),
      reserved('t3', 'b', 1_000_000),
    ];
    const turns = ['t1', 't2'].map((turnId) => ({ turnId, model: 'a' }));
    expect(reservedWith(all, turns, '')).toEqual({ calls: 2, microUsd: 10_000 });
    expect(reservedWith(all, turns, 'p/b')).toEqual({ calls: 2, microUsd: 4_000 });
    expect(reservedWith(all, turns, 'p/unknown')).toBeNull();
    // A call without a reservation makes the sum unknown, not smaller.
    expect(reservedWith(all, [...turns, { turnId: 't9', model: 'a' }], '')).toBeNull();
    expect(reservedWith(all, [...turns, { turnId: 't9', model: null }], '')?.calls).toBe(2);
  });
});
