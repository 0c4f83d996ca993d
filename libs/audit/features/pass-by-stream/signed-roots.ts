import type { KeyObject } from 'node:crypto';
import { createRootHasher, isSignedBy } from '@antiphon/event-store';
import type { LogRoot, RecordedEvent, SignedLogRoot, StreamHead } from '@antiphon/event-store';
import { type Finding, violation } from '@antiphon/audit-domain';
import { type About, nowhere } from '../audit-report.js';

export const signedRootsMatch: About = {
  name: 'signed-roots-match',
  about:
    'the log still has the heads that were signed at each position, so no event before it was changed or removed',
  counts: 'roots',
};

/** Signed roots, and the public key that must have signed them. */
export interface TrustedRoots {
  /** Null trusts no root. */
  readonly publicKey: KeyObject | null;
  readonly roots: readonly SignedLogRoot[];
}

const found = (message: string): Finding => violation(nowhere(''), message);
const describe = ({ position, at }: LogRoot): string => `position ${position} (signed ${at})`;

/** Computes one root again from the events of the log. */
class RootRun {
  private readonly hasher = createRootHasher();
  private head: StreamHead | null = null;

  constructor(private readonly root: LogRoot) {}

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

  end(headPosition: number): Finding[] {
    const { root } = this;
    if (root.position > headPosition)
      return [found(`the log ends at position ${headPosition}; a root was signed at ${describe(root)}`)];
    const computed = this.hasher.end();
    return computed.root === root.root && computed.streams === root.streams
      ? []
      : [found(`the heads are not those that were signed at ${describe(root)}`)];
  }
}

/**
 * Compares the log with signed roots. Takes event streams one after another, in the order of their
 * names. Roots of another epoch are not comparable and are skipped.
 */
export class SignedRootsRun {
  /** Number of compared roots, and of those with a bad signature. */
  readonly count: number;
  private readonly forged: readonly SignedLogRoot[];
  private readonly runs: readonly RootRun[];

  constructor({ publicKey, roots }: TrustedRoots, epoch: number) {
    this.forged = roots.filter((root) => publicKey === null || !isSignedBy(root, publicKey));
    this.runs = roots
      .filter((root) => !this.forged.includes(root) && root.epoch === epoch)
      .map((root) => new RootRun(root));
    this.count = this.forged.length + this.runs.length;
  }

  see(event: RecordedEvent): void {
    for (const run of this.runs) run.see(event);
  }

  endStream(): void {
    for (const run of this.runs) run.endStream();
  }

  /** Adds the head of a stream that is not read, because it has no event after the roots. */
  addUnreadHead(head: StreamHead): void {
    for (const run of this.runs) run.addUnreadHead(head);
  }

  end(headPosition: number): Finding[] {
    return [
      ...this.forged.map((root) =>
        found(`the root at ${describe(root)} was not signed with the key that is trusted`),
      ),
      ...this.runs.flatMap((run) => run.end(headPosition)),
    ];
  }
}
