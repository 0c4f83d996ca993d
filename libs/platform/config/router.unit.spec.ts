import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createRouter, type RoutingBinding } from './router.js';

const everything = { channel: 'c', account: 'a', peer: 'p', guild: 'g', team: 't' };
const ranked: RoutingBinding[] = [
  { agent: 'by-channel', channel: 'c' },
  { agent: 'by-account', account: 'a' },
  { agent: 'by-team', team: 't' },
  { agent: 'by-guild', guild: 'g' },
  { agent: 'by-peer', peer: 'p' },
];

describe('Router', () => {
  it('prefers peer over guild over team over account over channel over the default', () => {
    const order: string[] = [];
    for (let left = ranked.length; left >= 0; left--)
      order.push(createRouter(ranked.slice(0, left), 'fallback').route(everything));
    expect(order).toEqual(['by-peer', 'by-guild', 'by-team', 'by-account', 'by-channel', 'fallback']);
  });

  it('requires every field that a binding gives', () => {
    const router = createRouter([{ agent: 'vip', channel: 'web', peer: 'ann' }], 'main');
    expect(router.route({ channel: 'web', account: 'x', peer: 'ann' })).toBe('vip');
    expect(router.route({ channel: 'mail', account: 'x', peer: 'ann' })).toBe('main');
  });

  it('prefers the more specific of two bindings of one rank, in any order', () => {
    const bindings = [
      { agent: 'wide', peer: 'ann' },
      { agent: 'narrow', peer: 'ann', channel: 'web' },
    ];
    for (const order of [bindings, [...bindings].reverse()])
      expect(createRouter(order, 'main').route({ peer: 'ann', channel: 'web' })).toBe('narrow');
  });

  it('takes a binding without fields last, in any order', () => {
    const bindings = [{ agent: 'any' }, { agent: 'team', team: 't' }];
    for (const order of [bindings, [...bindings].reverse()]) {
      expect(createRouter(order, 'main').route({ team: 't' })).toBe('team');
      expect(createRouter(order, 'main').route({ team: 'other' })).toBe('any');
    }
  });

  it('chooses the first of two equal bindings', () =>
    expect(
      createRouter(
        [
          { agent: 'one', peer: 'p' },
          { agent: 'two', peer: 'p' },
        ],
        'm',
      ).route(everything),
    ).toBe('one'));

  it('treats names of Object.prototype as plain values', () => {
    const router = createRouter([{ agent: 'proto', peer: '__proto__' }], 'main');
    expect(router.route({ peer: '__proto__' })).toBe('proto');
    expect(router.route({ peer: 'constructor' })).toBe('main');
  });

  it('agrees with a scan over all bindings', () => {
    const value = fc.option(fc.constantFrom('x', 'y'), { nil: undefined });
    const key = fc.record({ channel: value, account: value, peer: value, guild: value, team: value });
    fc.assert(
      fc.property(fc.array(key, { maxLength: 20 }), key, (keys, wanted) => {
        const bindings = keys.map((fields, i) => ({ ...fields, agent: `agent-${i}` }));
        expect(createRouter(bindings, 'none').route(wanted)).toBe(scan(bindings, wanted));
      }),
      { numRuns: 2_000 },
    );
  });
});

/**
 * The specification as a scan: compare field by field in order of rank, then by how many fields are
 * given.
 */
const scan = (bindings: RoutingBinding[], wanted: typeof everything | object): string => {
  const ranks = ['peer', 'guild', 'team', 'account', 'channel'] as const;
  const key = wanted as Record<string, string | undefined>;
  const matching = bindings.filter((b) => ranks.every((f) => b[f] === undefined || b[f] === key[f]));
  const given = (b: RoutingBinding) => ranks.filter((f) => b[f] !== undefined);
  const score = (b: RoutingBinding): number[] => [
    -ranks.findIndex((f) => b[f] !== undefined) - (given(b).length ? 0 : 99),
    given(b).length,
    ...ranks.map((f) => (b[f] === undefined ? 0 : 1)),
  ];
  const better = (a: number[], b: number[]): boolean => {
    const at = a.findIndex((value, i) => value !== b[i]);
    return at >= 0 && (a[at] ?? 0) > (b[at] ?? 0);
  };
  let best: RoutingBinding | undefined;
  for (const b of matching) if (!best || better(score(b), score(best))) best = b;
  return best?.agent ?? 'none';
};
