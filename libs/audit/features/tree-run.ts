import type pg from 'pg';
import { type Finding, violation } from '@antiphon/audit-domain';
import { findNewestRoot, growTree, LogTree } from '@antiphon/event-store';
import type { LeafFields, SavedTree, SignedRoot, SignedTreeRoot } from '@antiphon/event-store';
import { nowhere } from './audit-report.js';

/** Creates a finding of the check of signed roots. */
export const foundInRoots = (message: string, position = 0): Finding =>
  violation({ ...nowhere(''), position }, message);
/** Describes a root by its position and time. */
export const describeRoot = ({ position, at }: SignedRoot): string => `position ${position} (signed ${at})`;

/** Maximum difference between the clocks of the signer and of the database, with a slow append. */
const MAX_CLOCK_SKEW_MS = 60_000;

/** Computes the tree of the log again, and compares it with every root of one base. */
export class TreeRun {
  private readonly tree: LogTree;
  private readonly roots: readonly SignedTreeRoot[];
  /** Position up to which an operator has accepted the log. */
  private readonly adopted: number;
  private next = 0;
  private matched: number;
  /** Newest root at or before the end of the tree. */
  private covering: SignedTreeRoot | null = null;
  private finding: Finding | null = null;

  constructor(roots: readonly SignedTreeRoot[], start: SavedTree) {
    this.tree = new LogTree(start);
    this.roots = roots.toSorted((a, b) => a.position - b.position);
    this.adopted = findNewestRoot(roots.filter(({ kind }) => kind === 'adoption'))?.position ?? 0;
    this.matched = start.base;
    this.compare();
  }

  see(event: LeafFields): void {
    const expected = this.tree.position + 1;
    if (this.finding || event.position < expected) return;
    if (event.position > expected) {
      const text = `the log has no event at position ${expected}, which the root at ${this.describeNext()} covers`;
      this.finding = foundInRoots(text, expected);
      return;
    }
    this.finding = this.findBackdated(event);
    this.tree.add(event);
    this.compare();
  }

  end(): Finding[] {
    const last = this.roots.at(-1);
    if (this.finding) return [this.finding];
    return last && last.position > this.tree.position
      ? [
          foundInRoots(
            `the log ends at position ${this.tree.position}; a root was signed at ${describeRoot(last)}`,
          ),
        ]
      : [];
  }

  /** Returns the state at the end; null after a finding. */
  save(): SavedTree | null {
    return this.finding ? null : this.tree.save();
  }

  /** Adds the events up to the position of a checkpoint, which the audit does not read again. */
  async skipTo(client: pg.ClientBase, position: number): Promise<void> {
    if (this.tree.position >= position) return;
    const broken = await growTree(client, this.tree, position);
    if (broken) this.finding = foundInRoots(broken.reason, broken.position);
    this.compare();
  }

  /**
   * Finds an event that claims an earlier time than the root before it: the owner of the log has
   * inserted it later. An adoption accepts the events before it.
   */
  private findBackdated({ position, recordedAt }: LeafFields): Finding | null {
    if (this.covering === null || position <= this.adopted) return null;
    const { number, at } = this.covering;
    if (Date.parse(recordedAt) >= Date.parse(at) - MAX_CLOCK_SKEW_MS) return null;
    return foundInRoots(
      `the event at position ${position} claims ${recordedAt}, before record ${number} was signed at ${at} without it`,
      position,
    );
  }

  private describeNext(): string {
    const root = this.roots[this.next];
    return root ? describeRoot(root) : 'a later position';
  }

  private compare(): void {
    for (;;) {
      const root = this.roots[this.next];
      if (root === undefined || root.position > this.tree.position) return;
      this.next++;
      if (root.position < this.tree.position) continue;
      if (root.root !== this.tree.hash()) {
        const text = `an event after position ${this.matched}, up to position ${root.position}, is not the one that record ${root.number} signed at ${root.at}`;
        this.finding ??= foundInRoots(text, this.matched + 1);
        return;
      }
      this.matched = root.position;
      this.covering = root;
    }
  }
}
