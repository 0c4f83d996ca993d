import type { KeyObject } from 'node:crypto';
import type pg from 'pg';
import type { Finding } from '@antiphon/audit-domain';
import {
  createRootHasher,
  findNewestRoot,
  followEpochs,
  hashRecord,
  isTreeRoot,
  sortBySignature,
  verifyRecordChain,
} from '@antiphon/event-store';
import type {
  LeafFields,
  RecordedEvent,
  SavedTree,
  SignedLogRoot,
  SignedRoot,
  StreamHead,
} from '@antiphon/event-store';
import { type About, type CheckReport, Tally } from './audit-report.js';
import type { SignedEnd } from './signing-state.js';
import { describeRoot as describe, foundInRoots as found, TreeRun } from './tree-run.js';

const signedRootsMatch: About = {
  name: 'signed-roots-match',
  about:
    'the log still has the events that were signed, at their positions and times, in the history that was signed',
  counts: 'roots',
};

/** Signed roots, and the public keys of which one must have signed each. */
export interface TrustedRoots {
  /** An empty list compares no root: the log counts as unsigned. */
  readonly publicKeys: readonly KeyObject[];
  readonly roots: readonly SignedRoot[];
  /** Lines that hold no signed root, such as `line 7 of log-roots.jsonl`. */
  readonly damaged?: readonly string[];
}

export const NO_ROOTS: TrustedRoots = { publicKeys: [], roots: [] };

/** Computes one root of format 1 again: SHA-256 over the heads of all event streams. */
class HeadsRun {
  private readonly hasher = createRootHasher();
  private head: StreamHead | null = null;

  constructor(private readonly root: SignedLogRoot) {}

  see({ position, workspace, streamId, streamVersion: version, hash }: RecordedEvent): void {
    if (position <= this.root.position) this.head = { workspace, streamId, version, hash };
  }

  endStream(): void {
    if (this.head) this.hasher.add(this.head);
    this.head = null;
  }

  addUnreadHead(head: StreamHead): void {
    this.hasher.add(head);
  }

  end(): Finding[] {
    const { root } = this;
    const computed = this.hasher.end();
    return computed.root === root.root && computed.streams === root.streams
      ? []
      : [found(`the heads are not those that were signed at ${describe(root)}`)];
  }
}

/** Maximum number of compared roots of format 1: each hashes all events again. */
const MAX_HEADS_ROOTS = 64;

/** Selects the newest, the oldest and, in between, roots at distances that double from the newest. */
const sampleGeometrically = <T>(roots: readonly T[]): T[] => {
  if (roots.length <= MAX_HEADS_ROOTS) return [...roots];
  const picked = new Set<number>([0]);
  for (let back = 1; back <= roots.length; back *= 2) picked.add(roots.length - back);
  for (let i = roots.length - 1; picked.size < MAX_HEADS_ROOTS; i--) picked.add(i);
  return [...picked].sort((a, b) => a - b).flatMap((i) => roots[i] ?? []);
};

/** False for a checkpoint, which is signed like a root of format 1. */
const isRoot = (root: SignedRoot): boolean => isTreeRoot(root) || !('kind' in root);

const dropRepeats = (roots: readonly SignedRoot[]): SignedRoot[] => [
  ...new Map(roots.map((root) => [hashRecord(root), root])).values(),
];

/** True if the newest signed record is of the log's epoch, and a record continues older ones. */
const explainsEpoch = (roots: readonly SignedRoot[], epoch: number): boolean => {
  const newest = findNewestRoot(roots);
  if (newest === null) return roots.some((root) => root.epoch === epoch);
  const trees = roots.filter(isTreeRoot);
  return (
    newest.epoch === epoch &&
    (trees.every((root) => root.epoch === epoch) ||
      trees.some((root) => root.kind === 'epoch' && root.epoch === epoch))
  );
};

const describeOtherEpoch = (roots: readonly SignedRoot[], epoch: number): Finding => {
  const known = Math.max(...roots.filter((root) => root.epoch !== epoch).map((root) => root.epoch));
  return found(`the log is of epoch ${epoch}; no signed record says that it continues epoch ${known}`);
};

/** Start of an audit that does not begin at the first event. */
export interface RootsStart {
  readonly position: number;
  readonly trees: readonly SavedTree[];
}

/**
 * Compares the log with all its signed roots. The pass by stream compares those of format 1, the
 * pass by position those of format 2. Skips roots of a history that the log does not continue.
 */
export class RootsAudit {
  private readonly tally = new Tally(signedRootsMatch, false);
  private readonly heads: readonly HeadsRun[];
  private readonly trees: readonly TreeRun[];
  private readonly comparable: readonly SignedRoot[];
  /** Roots that a trusted key signed, without checkpoints. */
  readonly trusted: readonly SignedRoot[];
  /** Roots of the history that the log continues, those before the start of the audit too. */
  private readonly signed: readonly SignedRoot[];

  constructor(
    { publicKeys, roots, damaged = [] }: TrustedRoots,
    private readonly bounds: { readonly epoch: number; readonly head: number },
    private readonly start: RootsStart | null,
  ) {
    const { trusted, forged } = sortBySignature(
      publicKeys.length === 0 ? [] : dropRepeats(roots),
      publicKeys,
    );
    this.trusted = trusted.filter(isRoot);
    this.reportRecords(trusted, forged, damaged);
    const lineage = followEpochs(trusted, bounds.epoch);
    const from = start?.position ?? 0;
    this.signed = trusted.filter(({ epoch, position }) => position <= (lineage.get(epoch) ?? -1));
    this.comparable = this.signed.filter(({ position }) => position >= from);
    this.tally.count(this.comparable.length + forged.length);
    this.heads = this.startHeads();
    this.trees = this.startTrees();
  }

  /** Adds the events before the start of the audit to the trees. */
  async prepare(client: pg.ClientBase): Promise<void> {
    for (const tree of this.trees) await tree.skipTo(client, this.start?.position ?? 0);
  }

  seeInStream(event: RecordedEvent): void {
    for (const run of this.heads) run.see(event);
  }

  endStream(): void {
    for (const run of this.heads) run.endStream();
  }

  /** Adds the head of a stream that is not read, because it has no event after the roots. */
  addUnreadHead(head: StreamHead): void {
    for (const run of this.heads) run.addUnreadHead(head);
  }

  seeInLog(event: LeafFields): void {
    for (const run of this.trees) run.see(event);
  }

  /** Returns the trees at the end of the log, for a checkpoint. */
  save(): readonly SavedTree[] {
    return this.trees.flatMap((tree) => tree.save() ?? []);
  }

  report(): CheckReport {
    for (const run of [...this.heads, ...this.trees]) this.tally.add(run.end());
    return this.tally.report();
  }

  /** Returns the last position that a signed root covers; null without one. */
  signedEnd(): SignedEnd | null {
    return this.signed
      .filter(isRoot)
      .reduce<SignedEnd | null>(
        (end, { position, at }) => (end !== null && end.position >= position ? end : { position, at }),
        null,
      );
  }

  private reportRecords(
    trusted: readonly SignedRoot[],
    forged: readonly SignedRoot[],
    damaged: readonly string[],
  ): void {
    const { epoch } = this.bounds;
    this.tally.add([
      ...damaged.map((line) => found(`${line} is not a signed root`)),
      ...forged.map((root) =>
        found(`the root at ${describe(root)} was not signed with a key that is trusted`),
      ),
      ...verifyRecordChain(trusted).map(({ root, reason }) => found(reason, root.position)),
      ...(trusted.length === 0 || explainsEpoch(trusted, epoch) ? [] : [describeOtherEpoch(trusted, epoch)]),
    ]);
  }

  private startHeads(): HeadsRun[] {
    const old = this.comparable.filter((root): root is SignedLogRoot => !isTreeRoot(root));
    const beyond = old.filter(({ position }) => position > this.bounds.head);
    this.tally.add(
      beyond.map((root) =>
        found(`the log ends at position ${this.bounds.head}; a root was signed at ${describe(root)}`),
      ),
    );
    const within = old.filter(({ position }) => position <= this.bounds.head);
    return sampleGeometrically(within).map((root) => new HeadsRun(root));
  }

  private startTrees(): TreeRun[] {
    const roots = this.comparable.filter(isTreeRoot);
    return [...new Set(roots.map(({ base }) => base))].map((base) => {
      const saved = this.start?.trees.find((tree) => tree.base === base);
      return new TreeRun(
        roots.filter((root) => root.base === base),
        saved ?? { base, position: base, peaks: [] },
      );
    });
  }
}
