import type pg from 'pg';
import { followEpochs, LogTree, readLeaves, sortBySignature } from '@antiphon/event-store';
import type { SavedTree, SignedRoot } from '@antiphon/event-store';
import { findFirst, type Violation } from './audit-report.js';
import { passByStream } from './pass-by-stream/pass-by-stream.js';
import { loadArchives } from './read-log/load-archives.js';
import { checkLogBase } from './read-log/log-base.js';
import { readLogBounds } from './read-log/read-log.js';
import { RootsAudit, type TrustedRoots } from './signed-roots.js';
import type { SignedEnd } from './signing-state.js';

/** Turns of a restored log wait for the start of its services. */
const NO_DEADLINE = '';

export interface RestoredLogOptions {
  /** Known roots, those of the replaced history too. */
  readonly trusted: TrustedRoots;
  /** Folder of the archive files. */
  readonly archives: string;
  /** Base of the tree that the next record continues; null for that of the log. */
  readonly base: number | null;
}

/** A restored log whose chains and roots were verified. */
export interface RestoredLog {
  readonly first: Violation | null;
  /** Epoch of the restored log. */
  readonly epoch: number;
  readonly tree: SavedTree;
  /** End of the newest root that covers the restored log; null without one. */
  readonly signed: SignedEnd | null;
}

const INTEGRITY = new Set([
  'versions-are-contiguous',
  'hash-chains-are-whole',
  'stream-heads-match',
  'signed-roots-match',
  'archives-are-whole',
  'log-base-is-explained',
]);

/** Selects the roots that the restored log must match: those of its history, up to its end. */
const selectRoots = (
  { publicKeys, roots }: TrustedRoots,
  { epoch, head }: { readonly epoch: number; readonly head: number },
): { selected: readonly SignedRoot[]; isOtherEpoch: boolean } => {
  const { trusted } = sortBySignature(roots, publicKeys);
  const lineage = followEpochs(trusted, epoch);
  const selected = trusted.filter((root) => root.position <= Math.min(head, lineage.get(root.epoch) ?? -1));
  return { selected, isOtherEpoch: trusted.length > 0 && !trusted.some((root) => root.epoch === epoch) };
};

const violationOf = (check: string, message: string, position: number | null = null): Violation => ({
  ...{ check, message, position, workspace: null, streamId: null, streamVersion: null, eventId: null },
});

/**
 * Verifies the chains of all event streams, and the signed roots up to the end of the log, in the
 * transaction that restores it. Leaves temporary tables that the session's end drops.
 */
export const verifyRestoredLog = async (
  client: pg.ClientBase,
  { trusted, archives: folder, base: treeBase }: RestoredLogOptions,
): Promise<RestoredLog> => {
  const archives = await loadArchives(client, folder);
  const bounds = await readLogBounds(client);
  const base = archives.ids.length > 0 ? 0 : bounds.base;
  const { selected, isOtherEpoch } = selectRoots(trusted, bounds);
  const roots = new RootsAudit({ publicKeys: trusted.publicKeys, roots: selected }, bounds, null);
  const streams = await passByStream(client, {
    strict: false,
    roots,
    after: null,
    takenUpSince: NO_DEADLINE,
  });
  const tree = new LogTree({ base: treeBase ?? base, position: treeBase ?? base, peaks: [] });
  for await (const leaf of readLeaves(client, base, bounds.head)) {
    roots.seeInLog(leaf);
    if (leaf.position === tree.position + 1) tree.add(leaf);
  }
  const checks = [await checkLogBase(client), ...streams, roots.report()].filter(({ name }) =>
    INTEGRITY.has(name),
  );
  const [damaged] = archives.findings;
  const missing = tree.position + 1;
  const violations = [
    ...(isOtherEpoch
      ? [
          violationOf(
            'signed-roots-match',
            `no signed root is of epoch ${bounds.epoch}, which the log claims`,
          ),
        ]
      : []),
    ...(damaged ? [violationOf('archives-are-whole', damaged.message)] : []),
    ...(missing <= bounds.head
      ? [violationOf('positions-are-gapless', `the log has no event at position ${missing}`, missing)]
      : []),
  ];
  await client.query('drop view if exists pg_temp.events; drop table if exists pg_temp.archived_events');
  return {
    first: violations[0] ?? findFirst(checks),
    ...{ epoch: bounds.epoch, tree: tree.save(), signed: roots.signedEnd() },
  };
};
