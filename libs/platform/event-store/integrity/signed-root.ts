import { createHash, type KeyObject } from 'node:crypto';
import type { JsonObject } from '@antiphon/kernel';
import { canonicalJson } from './event-hash.js';
import type { SignedLogRoot } from './log-root.js';
import { arePeaksOf, hashPeaks, type SavedTree } from './log-tree.js';
import { isSignedByAny } from './signing-key.js';

/**
 * Tree head of the log at a position, chained to the record before it. A root of kind `epoch` also
 * says which epoch the log continues, and from which position. With one of kind `adoption` an
 * operator accepts events that no root before it vouches for.
 */
export interface TreeRoot extends SavedTree {
  readonly format: 2;
  readonly kind: 'root' | 'epoch' | 'adoption';
  /** Place of the record in its chain: 1, 2, 3 … */
  readonly number: number;
  readonly epoch: number;
  /** Merkle tree hash of the log after `base`, up to `position`; hex. */
  readonly root: string;
  /** SHA-256 over the RFC 8785 text of the record before; hex, null for the first. */
  readonly previous: string | null;
  /** ISO 8601, UTC. */
  readonly at: string;
  /** Epoch that the log continues at `position`; only of kind `epoch`. */
  readonly continues: number | null;
  /** Reason for the epoch or the adoption, such as `restore`; null of kind `root`. */
  readonly reason: string | null;
  /** Operator who adopted the log or restored it; missing of kind `root`. */
  readonly actor?: string;
}

interface Signature {
  readonly keyId: string;
  readonly signature: string;
}

export type SignedTreeRoot = TreeRoot & Signature;
/** A root of any version: format 1 covers the heads of all event streams, format 2 is a tree. */
export type SignedRoot = SignedLogRoot | SignedTreeRoot;

export const isTreeRoot = (root: SignedRoot): root is SignedTreeRoot => root.format === 2;

/** Returns the hash of a record, which the next record carries; hex. */
export const hashRecord = (root: SignedRoot): string =>
  createHash('sha256')
    .update(canonicalJson(root as unknown as JsonObject))
    .digest('hex');

type Fields = Readonly<Record<string, unknown>>;

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;
const isText = (value: unknown): value is string => typeof value === 'string';
const isHash = (value: unknown): boolean => isText(value) && /^[0-9a-f]{64}$/.test(value);

const hasSharedFields = ({ epoch, position, root, at, keyId, signature }: Fields): boolean =>
  isCount(epoch) &&
  isCount(position) &&
  isHash(root) &&
  isText(at) &&
  !Number.isNaN(Date.parse(at)) &&
  isText(keyId) &&
  isText(signature);

const hasKindFields = ({ kind, continues, reason, actor }: Fields): boolean => {
  if (kind === 'root') return continues === null && reason === null;
  if (kind === 'adoption') return continues === null && isText(reason) && isText(actor);
  return kind === 'epoch' && isCount(continues) && isText(reason);
};

const hasTreeFields = (fields: Fields): boolean => {
  const { number, base, position, peaks, root, previous } = fields;
  return (
    isCount(number) &&
    number > 0 &&
    isCount(base) &&
    arePeaksOf(Number(position) - base, peaks) &&
    hashPeaks(peaks) === root &&
    (previous === null || isHash(previous)) &&
    hasKindFields(fields)
  );
};

/** Returns a signed root of a known format whose fields have the right types, else null. */
export const parseSignedRoot = (value: unknown): SignedRoot | null => {
  if (typeof value !== 'object' || value === null) return null;
  const fields = value as Fields;
  if (!hasSharedFields(fields)) return null;
  const isKnown =
    fields['format'] === 1 ? isCount(fields['streams']) : fields['format'] === 2 && hasTreeFields(fields);
  return isKnown ? (value as SignedRoot) : null;
};

/** Content of a file of signed roots. */
export interface ParsedRoots {
  readonly roots: readonly SignedRoot[];
  /** Numbers of the lines that are not a signed root, from 1. */
  readonly badLines: readonly number[];
}

const parseLine = (line: string): SignedRoot | null => {
  try {
    return parseSignedRoot(JSON.parse(line));
  } catch {
    return null;
  }
};

/** Parses a file of signed roots: one JSON object a line. Never throws. */
export const parseRootLines = (text: string): ParsedRoots => {
  const roots: SignedRoot[] = [];
  const badLines: number[] = [];
  for (const [i, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue;
    const root = parseLine(line);
    if (root) roots.push(root);
    else badLines.push(i + 1);
  }
  return { roots, badLines };
};

/** Returns the tree root with the highest number; null if there is none. */
export const findNewestRoot = (roots: readonly SignedRoot[]): SignedTreeRoot | null =>
  roots
    .filter(isTreeRoot)
    .reduce<SignedTreeRoot | null>(
      (newest, root) => (newest === null || root.number > newest.number ? root : newest),
      null,
    );

/** Two records of one chain that contradict each other. */
export interface ChainBreak {
  readonly root: SignedTreeRoot;
  readonly reason: string;
}

/**
 * Verifies the chain of tree roots: one record for each number, and each carries the hash of the
 * one before. Records may be missing, because each covers the whole log before it.
 */
export const verifyRecordChain = (roots: readonly SignedRoot[]): ChainBreak[] => {
  const byNumber = new Map<number, SignedTreeRoot>();
  const breaks: ChainBreak[] = [];
  for (const root of roots.filter(isTreeRoot)) {
    const other = byNumber.get(root.number);
    if (other && hashRecord(other) !== hashRecord(root))
      breaks.push({ root, reason: `two different records have number ${root.number}` });
    byNumber.set(root.number, root);
  }
  for (const root of byNumber.values()) {
    const before = byNumber.get(root.number - 1);
    if (before && root.previous !== hashRecord(before))
      breaks.push({
        root,
        reason: `record ${root.number} does not carry the hash of record ${before.number}`,
      });
  }
  return breaks;
};

/** Epochs that the current log continues, each with the last position that it shares with them. */
export type Lineage = ReadonlyMap<number, number>;

/** Follows the signed epoch records from the current epoch of the log backwards. */
export const followEpochs = (roots: readonly SignedRoot[], epoch: number): Lineage => {
  const records = roots.filter(isTreeRoot).filter(({ kind }) => kind === 'epoch');
  const lineage = new Map<number, number>();
  let [current, limit]: [number | null, number] = [epoch, Infinity];
  while (current !== null && !lineage.has(current)) {
    lineage.set(current, limit);
    const record = records.find((one) => one.epoch === current);
    if (record) limit = Math.min(limit, record.position);
    current = record?.continues ?? null;
  }
  return lineage;
};

/** Roots of which a key that is trusted signed each one, and the others. */
export interface SortedRoots {
  readonly trusted: readonly SignedRoot[];
  readonly forged: readonly SignedRoot[];
}

export const sortBySignature = (roots: readonly SignedRoot[], keys: readonly KeyObject[]): SortedRoots => ({
  trusted: roots.filter((root) => isSignedByAny(root, keys)),
  forged: roots.filter((root) => !isSignedByAny(root, keys)),
});
