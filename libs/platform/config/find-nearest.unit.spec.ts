import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { editDistance, findNearest } from '@antiphon/config';

describe('findNearest', () => {
  it.each([
    ['prot', 'port'],
    ['PORTS', 'port'],
    ['agent', 'agents'],
    ['soul', 'soul_path'],
    ['base-url', 'base_url'],
  ])('%s means %s', (name, meant) =>
    expect(findNearest(name, ['host', 'port', 'agents', 'soul_path', 'base_url'])).toBe(meant),
  );

  it('returns null when no candidate is similar', () =>
    expect(findNearest('bind', ['host', 'port', 'token'])).toBeNull());

  it('stays fast for very long names', () =>
    expect(findNearest('x'.repeat(1_000_000), ['y'.repeat(1_000_000)])).toBeNull());
});

describe('editDistance', () => {
  it('counts a swap of neighbours once', () => expect(editDistance('abcd', 'acbd')).toBe(1));

  it('is symmetric, and zero for the same text only', () =>
    fc.assert(
      fc.property(fc.string({ maxLength: 12 }), fc.string({ maxLength: 12 }), (a, b) => {
        expect(editDistance(a, b)).toBe(editDistance(b, a));
        expect(editDistance(a, b) === 0).toBe(a === b);
      }),
    ));
});
