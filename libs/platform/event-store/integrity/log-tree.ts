import { createHash } from 'node:crypto';
import { bug } from '@antiphon/kernel';

/** Fields of an event that its leaf covers. The event's hash covers its content and stream. */
export interface LeafFields {
  readonly position: number;
  readonly workspace: string;
  /** ISO 8601, UTC, with milliseconds. */
  readonly recordedAt: string;
  /** Hash of the event in the chain of its stream; hex. */
  readonly hash: string;
}

// Different prefixes for leaves and inner nodes, as in RFC 6962: no node can pass for a leaf.
const LEAF = Buffer.from([0]);
const NODE = Buffer.from([1]);

/** Returns the leaf of an event: SHA-256 over its position, time, workspace and hash. */
export const hashLeaf = ({ position, workspace, recordedAt, hash }: LeafFields): Buffer =>
  createHash('sha256')
    .update(LEAF)
    .update(['antiphon-leaf-1', position, recordedAt, workspace, hash].join('\n'))
    .digest();

const hashNode = (left: Buffer, right: Buffer): Buffer =>
  createHash('sha256').update(NODE).update(left).update(right).digest();

/** Roots of the complete subtrees of a tree, from the largest to the smallest; hex. */
export type Peaks = readonly string[];

/** Returns the sizes of the complete subtrees of a tree: the powers of two that add up to its size. */
const peakSizes = (size: number): number[] => {
  const sizes: number[] = [];
  let power = 1;
  while (power * 2 <= size) power *= 2;
  for (let rest = size; rest > 0; power /= 2)
    if (power <= rest) {
      sizes.push(power);
      rest -= power;
    }
  return sizes;
};

/** Returns the Merkle tree hash of RFC 6962 from the roots of its complete subtrees; hex. */
export const hashPeaks = (peaks: Peaks): string => {
  const hashes: Buffer[] = peaks.map((peak) => Buffer.from(peak, 'hex'));
  const last = hashes.pop() ?? createHash('sha256').digest();
  return hashes.reduceRight((right, left) => hashNode(left, right), last).toString('hex');
};

/** True if a tree of this size has as many complete subtrees, each with a SHA-256 hash. */
export const arePeaksOf = (size: number, peaks: unknown): peaks is Peaks =>
  Number.isSafeInteger(size) &&
  size >= 0 &&
  Array.isArray(peaks) &&
  peaks.length === peakSizes(size).length &&
  peaks.every((peak) => typeof peak === 'string' && /^[0-9a-f]{64}$/.test(peak));

/** State of a tree as JSON: the log after position `base`, up to `position`. */
export interface SavedTree {
  /** Position before the first leaf. */
  readonly base: number;
  /** Position of the last leaf. */
  readonly position: number;
  readonly peaks: Peaks;
}

/** Complete subtree of `size` leaves. */
interface Subtree {
  readonly hash: Buffer;
  readonly size: number;
}

/** Joins the last subtrees while two of them have the same size. Calls `onJoin` for each pair. */
const joinEqual = <T extends Subtree>(subtrees: T[], join: (left: T, right: T) => T): void => {
  for (;;) {
    const [left, right] = subtrees.slice(-2);
    if (left === undefined || right === undefined || left.size !== right.size) return;
    subtrees.splice(-2, 2, join(left, right));
  }
};

/**
 * Merkle tree over the events of the log in the order of their positions. It stores only the roots
 * of its complete subtrees, so that adding an event costs the same in a log of any size.
 */
export class LogTree {
  readonly base: number;
  private last: number;
  private readonly subtrees: Subtree[];

  /** Continues a saved tree. The default is an empty tree before the first event. */
  constructor({ base, position, peaks }: SavedTree = { base: 0, position: 0, peaks: [] }) {
    this.base = base;
    this.last = position;
    const sizes = peakSizes(position - base);
    this.subtrees = peaks.map((peak, i) => ({ hash: Buffer.from(peak, 'hex'), size: sizes[i] ?? 0 }));
  }

  /** Position of the last leaf. */
  get position(): number {
    return this.last;
  }

  /** Adds the event after the last one. Throws for any other position. */
  add(event: LeafFields): void {
    if (event.position !== this.last + 1)
      throw bug('LOG.TREE_GAP', `position ${event.position} follows ${this.last} in the tree of the log`);
    this.last = event.position;
    this.subtrees.push({ hash: hashLeaf(event), size: 1 });
    joinEqual(this.subtrees, (left, right) => ({
      hash: hashNode(left.hash, right.hash),
      size: left.size * 2,
    }));
  }

  save(): SavedTree {
    const peaks = this.subtrees.map(({ hash }) => hash.toString('hex'));
    return { base: this.base, position: this.last, peaks };
  }

  /** Returns the Merkle tree hash; hex. */
  hash(): string {
    return hashPeaks(this.save().peaks);
  }
}

/** Complete subtree of a tree that contains one leaf, by positions. */
export interface PeakRange {
  readonly index: number;
  /** Position of the first leaf. */
  readonly first: number;
  readonly size: number;
}

/** Finds the complete subtree that contains a position; null for a position outside of the tree. */
export const findPeak = (
  { base, position: end }: Pick<SavedTree, 'base' | 'position'>,
  position: number,
): PeakRange | null => {
  let first = base + 1;
  for (const [index, size] of peakSizes(end - base).entries()) {
    if (position >= first && position < first + size) return { index, first, size };
    first += size;
  }
  return null;
};

/** Collects the path from one leaf to the root of its complete subtree. */
export class PathBuilder {
  private readonly siblings: string[] = [];
  private readonly subtrees: (Subtree & { readonly isTarget: boolean })[] = [];

  constructor(private readonly position: number) {}

  /** Adds the leaves of the subtree, from the first to the last. */
  add(event: LeafFields): void {
    this.subtrees.push({ hash: hashLeaf(event), size: 1, isTarget: event.position === this.position });
    joinEqual(this.subtrees, (left, right) => {
      if (left.isTarget) this.siblings.push(right.hash.toString('hex'));
      if (right.isTarget) this.siblings.push(left.hash.toString('hex'));
      return {
        hash: hashNode(left.hash, right.hash),
        size: left.size * 2,
        isTarget: left.isTarget || right.isTarget,
      };
    });
  }

  /** Returns the hashes next to the path, from the leaf upwards; hex. */
  path(): readonly string[] {
    return this.siblings;
  }
}

/** True if a path leads from the leaf of an event to the root of its subtree in a tree. */
export const isPathTo = (tree: SavedTree, event: LeafFields, path: readonly string[]): boolean => {
  const peak = findPeak(tree, event.position);
  if (peak === null || path.length !== Math.log2(peak.size)) return false;
  let index = event.position - peak.first;
  let hash = hashLeaf(event);
  for (const sibling of path.map((text) => Buffer.from(text, 'hex'))) {
    hash = index % 2 === 0 ? hashNode(hash, sibling) : hashNode(sibling, hash);
    index = Math.floor(index / 2);
  }
  return hash.toString('hex') === tree.peaks[peak.index];
};
