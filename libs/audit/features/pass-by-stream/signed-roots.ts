import type { KeyObject } from 'node:crypto';
import { createRootHasher, isSignedBy } from '@antiphon/event-store';
import type { LogRoot, RecordedEvent, SignedLogRoot, StreamHead } from '@antiphon/event-store';
import { violation } from '@antiphon/audit-domain';
import type { Finding } from '@antiphon/audit-domain';
import { nowhere } from '../audit-report.js';
import type { About } from '../audit-report.js';

export const signedRootsMatch: About = {
  name: 'signed-roots-match',
  about:
    'the log still has the heads that were signed at each position, so nothing before it was changed or removed',
  counts: 'roots',
};

/** Roots that were signed, and the public key that they must be signed with. */
export interface TrustedRoots {
  /** Null trusts none. */
  readonly publicKey: KeyObject | null;
  readonly roots: readonly SignedLogRoot[];
}

const found = (message: string): Finding => violation(nowhere(''), message);
const at = ({ position, at: time }: LogRoot): string => `position ${position} (signed ${time})`;

/** Makes one root again from what the log has now. */
const followRoot = (root: LogRoot) => {
  const hasher = createRootHasher();
  let head: StreamHead | null = null;
  return {
    root,
    see: (event: RecordedEvent): void => {
      const { workspace, streamId, streamVersion: version, hash } = event;
      if (event.position <= root.position) head = { workspace, streamId, version, hash };
    },
    endStream: (): void => {
      if (head) hasher.add(head);
      head = null;
    },
    /** A stream that was not read, since nothing was appended to it after the root. */
    untouched: hasher.add,
    end: (headPosition: number): Finding[] => {
      if (root.position > headPosition)
        return [found(`the log ends at position ${headPosition}; a root was signed at ${at(root)}`)];
      const made = hasher.end();
      return made.root === root.root && made.streams === root.streams
        ? []
        : [found(`the heads are not those that were signed at ${at(root)}`)];
    },
  };
};

/** Event streams are seen one after another, in the order of their names. Roots of another epoch are not comparable. */
export const followRoots = ({ publicKey, roots }: TrustedRoots, epoch: number) => {
  const forged = roots.filter((root) => publicKey === null || !isSignedBy(root, publicKey));
  const followed = roots
    .filter((root) => !forged.includes(root) && root.epoch === epoch)
    .map((root) => followRoot(root));
  return {
    count: forged.length + followed.length,
    see: (event: RecordedEvent): void => {
      for (const one of followed) one.see(event);
    },
    endStream: (): void => {
      for (const one of followed) one.endStream();
    },
    untouched: (head: StreamHead): void => {
      for (const one of followed) one.untouched(head);
    },
    end: (headPosition: number): Finding[] => [
      ...forged.map((root) => found(`the root at ${at(root)} was not signed with the key that is trusted`)),
      ...followed.flatMap((one) => one.end(headPosition)),
    ],
  };
};
