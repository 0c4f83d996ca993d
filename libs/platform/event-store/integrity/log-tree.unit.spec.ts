import { describe, expect, it } from '@jest/globals';
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import {
  arePeaksOf,
  findPeak,
  hashLeaf,
  isPathTo,
  type LeafFields,
  LogTree,
  PathBuilder,
} from './log-tree.js';

const leaf = (position: number): LeafFields => ({
  position,
  workspace: 'default',
  recordedAt: '2026-11-21T10:00:00.000Z',
  hash: createHash('sha256').update(String(position)).digest('hex'),
});
const grow = (size: number, base = 0): LogTree => {
  const tree = new LogTree({ base, position: base, peaks: [] });
  for (let i = 1; i <= size; i++) tree.add(leaf(base + i));
  return tree;
};
/** Merkle tree hash of RFC 6962, from its definition. */
const definition = (leaves: readonly Buffer[]): Buffer => {
  const [first] = leaves;
  if (leaves.length === 1 && first) return first;
  let split = 1;
  while (split * 2 < leaves.length) split *= 2;
  const node = createHash('sha256').update(Buffer.from([1]));
  return node
    .update(definition(leaves.slice(0, split)))
    .update(definition(leaves.slice(split)))
    .digest();
};

describe('the tree of the log', () => {
  it('has the hash of RFC 6962 for every size', () => {
    for (let size = 1; size <= 70; size++) {
      const leaves = Array.from({ length: size }, (_, i) => hashLeaf(leaf(i + 1)));
      expect(grow(size).hash()).toBe(definition(leaves).toString('hex'));
    }
  });

  it('has the same hash when it continues from a saved state', () =>
    fc.assert(
      fc.property(fc.nat(60), fc.nat(60), fc.nat(1_000), (first, second, base) => {
        const tree = new LogTree(grow(first, base).save());
        for (let i = 1; i <= second; i++) tree.add(leaf(base + first + i));
        expect(tree.hash()).toBe(grow(first + second, base).hash());
        expect(arePeaksOf(first + second, tree.save().peaks)).toBe(true);
      }),
    ));

  it('refuses a gap and a repeated position', () => {
    expect(() => grow(3).add(leaf(5))).toThrow(/position 5 follows 3/);
    expect(() => grow(3).add(leaf(3))).toThrow(/position 3 follows 3/);
  });

  it('has a fixed hash, so that roots of one version are verified by the next', () =>
    expect(grow(5).hash()).toMatchInlineSnapshot(
      `"f14d93007f4fbe0e1b20aa7e15e4959a4b3f62f21302dd5ae1279128643303f5"`,
    ));
});

describe('a path in the tree', () => {
  it('leads from every event to the root, and from no other', () =>
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 80 }), fc.nat(1_000), fc.nat(), (size, base, seed) => {
        const tree = grow(size, base).save();
        const position = base + 1 + (seed % size);
        const peak = findPeak(tree, position)!;
        const builder = new PathBuilder(position);
        for (let at = peak.first; at < peak.first + peak.size; at++) builder.add(leaf(at));
        const path = builder.path();
        expect(isPathTo(tree, leaf(position), path)).toBe(true);
        expect(isPathTo(tree, { ...leaf(position), hash: leaf(0).hash }, path)).toBe(false);
        expect(isPathTo(tree, { ...leaf(position), workspace: 'other' }, path)).toBe(false);
        if (size > 1)
          expect(
            isPathTo(
              tree,
              { ...leaf(position), position: position === base + 1 ? position + 1 : position - 1 },
              path,
            ),
          ).toBe(false);
        for (const i of path.keys())
          expect(isPathTo(tree, leaf(position), path.with(i, leaf(0).hash))).toBe(false);
        expect(isPathTo(tree, leaf(position), [...path, leaf(0).hash])).toBe(false);
      }),
      { numRuns: 200 },
    ));
});
