import type { KeyObject } from 'node:crypto';
import type pg from 'pg';
import {
  findPeak,
  followEpochs,
  genesisHash,
  isTreeRoot,
  PathBuilder,
  readLeaves,
  readStoredRoots,
  renderProof,
  sortBySignature,
  verifyProof,
} from '@antiphon/event-store';
import type { EventProof, RecordedEvent, SignedRoot, SignedTreeRoot } from '@antiphon/event-store';
import { notFound } from '@antiphon/kernel';
import { isSameLog, loadArchives, unloadArchives } from './read-log/load-archives.js';
import { EVENT_COLUMNS, type EventRow, readLogBounds, runOnSnapshot, toEvent } from './read-log/read-log.js';

export interface ProveOptions {
  readonly pool: pg.Pool;
  readonly eventId: string;
  readonly publicKeys: readonly KeyObject[];
  /** Known roots; those of the table are added. */
  readonly roots: readonly SignedRoot[];
  /** Folder of the archive files. */
  readonly archives: string;
}

const readEvent = async (client: pg.ClientBase, eventId: string): Promise<RecordedEvent> => {
  const sql = `select ${EVENT_COLUMNS} from events where event_id = $1`;
  const { rows } = await client.query<EventRow>(sql, [eventId]);
  if (rows[0]) return toEvent(rows[0]);
  throw notFound('PROOF.NO_EVENT', `the log has no event ${eventId}`);
};

const readPreviousHash = async (
  client: pg.ClientBase,
  { workspace, streamId, streamVersion }: RecordedEvent,
): Promise<string> => {
  if (streamVersion === 1) return genesisHash(workspace).toString('hex');
  const { rows } = await client.query<{ hash: string }>(
    `select encode(hash, 'hex') as hash from events
     where workspace = $1 and stream_id = $2 and stream_version = $3`,
    [workspace, streamId, streamVersion - 1],
  );
  return rows[0]?.hash ?? '';
};

/** Selects the first root that covers the event, of the history that the log continues. */
const selectRoot = (
  roots: readonly SignedRoot[],
  { position }: RecordedEvent,
  epoch: number,
): SignedTreeRoot => {
  const lineage = followEpochs(roots, epoch);
  const [first] = roots
    .filter(isTreeRoot)
    .filter((root) => root.position <= (lineage.get(root.epoch) ?? -1))
    .filter((root) => root.base < position && root.position >= position)
    .toSorted((a, b) => a.position - b.position);
  if (first) return first;
  throw notFound(
    'PROOF.NO_ROOT',
    `no signed root covers position ${position} yet. What to do: wait for the next root, or name the roots and the key with --roots and --key`,
  );
};

const buildPath = async (
  client: pg.ClientBase,
  root: SignedTreeRoot,
  position: number,
): Promise<readonly string[]> => {
  const peak = findPeak(root, position);
  const path = new PathBuilder(position);
  if (peak)
    for await (const leaf of readLeaves(client, peak.first - 1, peak.first + peak.size - 1)) path.add(leaf);
  return path.path();
};

/** Creates the proof of an event on the snapshot of a transaction. */
export const proveOnSnapshot = async (client: pg.ClientBase, options: ProveOptions): Promise<EventProof> => {
  const { eventId, publicKeys, roots } = options;
  const { trusted } = sortBySignature([...roots, ...(await readStoredRoots(client))], publicKeys);
  const event = await readEvent(client, eventId);
  const { epoch } = await readLogBounds(client);
  const root = selectRoot(trusted, event, epoch);
  const [previousHash, path] = [
    await readPreviousHash(client, event),
    await buildPath(client, root, event.position),
  ];
  const proof: EventProof = { kind: 'antiphon-proof', format: 1, event, previousHash, path, root };
  // An event that was changed after it was signed has no proof.
  return verifyProof(renderProof(proof), publicKeys);
};

/**
 * Creates the proof that an event is in the log that was signed. Rejects with `PROOF.NO_EVENT`,
 * `PROOF.NO_ROOT`, and with `PROOF.INVALID` for an event that differs from the signed one.
 */
export const proveEvent = async (options: ProveOptions): Promise<EventProof> => {
  const proof = await runOnSnapshot(
    options.pool,
    (client) => loadArchives(client, options.archives),
    async (client, archives) =>
      (await isSameLog(client, archives)) ? proveOnSnapshot(client, options) : null,
    unloadArchives,
  );
  return proof ?? proveEvent(options);
};
