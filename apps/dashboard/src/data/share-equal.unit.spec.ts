import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { shareEqual } from './share-equal.js';

describe('shareEqual', () => {
  it('returns the value before if both are equal, else a value that equals the next', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (before, next) => {
        expect(shareEqual(before, next)).toEqual(next);
        expect(shareEqual(next, structuredClone(next))).toBe(next);
      }),
    );
  });

  it('keeps the objects of rows that have not changed', () => {
    const before = {
      runs: [
        { id: 'a', nodes: [1] },
        { id: 'b', nodes: [2] },
      ],
      head: 1,
    };
    const next = {
      runs: [
        { id: 'a', nodes: [1] },
        { id: 'b', nodes: [3] },
      ],
      head: 2,
    };
    const shared = shareEqual(before, next) as typeof before;
    expect(shared).toEqual(next);
    expect(shared.runs[0]).toBe(before.runs[0]);
    expect(shared.runs[1]).not.toBe(before.runs[1]);
  });

  it('treats fields with the names of methods as fields', () => {
    const next = JSON.parse('{"__proto__":{"a":1},"constructor":2}') as object;
    expect(JSON.stringify(shareEqual({}, next))).toBe(JSON.stringify(next));
  });
});
