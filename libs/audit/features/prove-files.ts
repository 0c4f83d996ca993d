import type { KeyObject } from 'node:crypto';
import type pg from 'pg';
import { FileFold } from '@antiphon/audit-domain';
import type { FoldedFile } from '@antiphon/audit-domain';
import { FileTreeEvent } from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import { canonicalJson, genesisHash, hashEvent, renderProof, verifyProof } from '@antiphon/event-store';
import type { EventProof, RecordedEvent } from '@antiphon/event-store';
import { invalid, isAppError, notFound } from '@antiphon/kernel';
import type { JsonObject } from '@antiphon/kernel';
import { isSameLog, loadArchives, unloadArchives } from './read-log/load-archives.js';
import { EVENT_COLUMNS, type EventRow, runOnSnapshot, toEvent } from './read-log/read-log.js';
import { proveOnSnapshot, type ProveOptions } from './prove-event.js';

/** Every fact of a tree up to a version. The proof of the last one covers all by their hashes. */
interface ProvedTree {
  readonly events: readonly RecordedEvent[];
  readonly proof: EventProof;
}

/**
 * Proof of all files of a tree at a version. A fork has the facts of its base first. It is verified
 * with the public key alone.
 */
export interface FilesProof {
  readonly kind: 'antiphon-files-proof';
  readonly format: 1;
  readonly trees: readonly ProvedTree[];
}

/** Files that a proof shows, by path. */
export interface ProvedFiles {
  readonly files: ReadonlyMap<string, FoldedFile<RecordedEvent>>;
  /** Version of the tree: the number of its changes, with those of its base. */
  readonly version: number;
  readonly proof: EventProof;
}

interface Forked {
  readonly base: string;
  readonly version: number;
}

const STREAM_SQL = `select ${EVENT_COLUMNS} from events
  where workspace = $1 and stream_id = $2 and stream_version <= $3 order by stream_version`;
const PLACE_SQL = `select ${EVENT_COLUMNS} from events where event_id = $1 and category = 'file'`;

const streamOf = (treeId: string): string => `file-tree-${treeId}`;

const refuse = (reason: string, cause?: unknown): never => {
  throw invalid('PROOF.INVALID', `the proof does not hold: ${reason}`, { cause });
};

/** Returns the base of a tree whose first fact is that of a fork. */
const forkOf = (events: readonly RecordedEvent[]): Forked | null =>
  events[0]?.type === 'FileTreeForked' ? (events[0].data as unknown as Forked) : null;

const readStream = async (
  client: pg.ClientBase,
  workspace: string,
  streamId: string,
  version: number,
): Promise<RecordedEvent[]> =>
  (await client.query<EventRow>(STREAM_SQL, [workspace, streamId, version])).rows.map(toEvent);

/** Reads the facts of a tree up to a version of its event stream, and those of its bases. */
const readTrees = async (
  client: pg.ClientBase,
  { workspace, streamId, streamVersion }: RecordedEvent,
): Promise<RecordedEvent[][]> => {
  const trees: RecordedEvent[][] = [await readStream(client, workspace, streamId, streamVersion)];
  for (let fork = forkOf(trees[0] ?? []); fork !== null && fork.version > 0;) {
    const { base, version } = fork;
    const first = await readStream(client, workspace, streamOf(base), 1);
    const offset = forkOf(first)?.version ?? 0;
    // A base without a change of its own before the fork has the files of its own base.
    const own = Math.max(1, version - offset);
    const events = await readStream(client, workspace, streamOf(base), own);
    trees.unshift(events);
    const inner = forkOf(events);
    fork = inner && { ...inner, version: Math.min(inner.version, version) };
  }
  return trees;
};

const prove = async (client: pg.ClientBase, options: ProveOptions): Promise<FilesProof> => {
  const { rows } = await client.query<EventRow>(PLACE_SQL, [options.eventId]);
  if (!rows[0]) throw notFound('PROOF.NO_EVENT', `the log has no change ${options.eventId} of a file`);
  const trees: ProvedTree[] = [];
  for (const events of await readTrees(client, toEvent(rows[0]))) {
    const eventId = events.at(-1)?.eventId ?? '';
    trees.push({ events, proof: await proveOnSnapshot(client, { ...options, eventId }) });
  }
  return { kind: 'antiphon-files-proof', format: 1, trees };
};

/**
 * Creates the proof of all files of a tree after one of its changes. Rejects with `PROOF.NO_EVENT`,
 * and with `PROOF.NO_ROOT` while no signed root covers the change.
 */
export const proveFiles = async (options: ProveOptions): Promise<FilesProof> => {
  const proof = await runOnSnapshot(
    options.pool,
    (client) => loadArchives(client, options.archives),
    async (client, archives) => ((await isSameLog(client, archives)) ? prove(client, options) : null),
    unloadArchives,
  );
  return proof ?? proveFiles(options);
};

/** Throws unless the events are the whole chain of their event stream up to the proved one. */
const checkChain = (events: readonly RecordedEvent[], { event: last }: EventProof): void => {
  let hash = genesisHash(last.workspace);
  for (const [index, event] of events.entries()) {
    const { streamId, workspace, streamVersion } = event;
    if (streamId !== last.streamId || workspace !== last.workspace || streamVersion !== index + 1)
      refuse(`event ${event.eventId} is not the next one of its event stream`);
    const data = canonicalJson(event.data);
    hash = hashEvent(hash, { ...event, data, metadata: canonicalJson(event.metadata as JsonObject) });
    if (hash.toString('hex') !== event.hash)
      refuse(`event ${event.eventId} does not have the hash of its content`);
  }
  if (events.at(-1)?.hash !== last.hash) refuse('the last event is not the one that is proved');
};

/** Files up to here: the event stream of the tree, and its version. */
interface Base {
  readonly streamId: string;
  readonly version: number;
  /** True for a fork without a change of its own: it has the files of its base. */
  readonly isLone: boolean;
}

/** Returns the version of a tree. Throws unless a fork begins with the files of the tree before it. */
const versionOf = (events: readonly RecordedEvent[], base: Base | null): number => {
  const fork = forkOf(events);
  if (!fork || fork.version === 0)
    return base ? refuse('a tree has a base that it does not name') : events.length;
  if (base?.streamId !== streamOf(fork.base)) return refuse('the base of the fork is missing');
  const isLone = events.length === 1;
  const isWhole = base.version === fork.version || (base.isLone && base.version + 1 === fork.version);
  // A later fork may begin before this one did.
  if (!isWhole && !(isLone && base.version < fork.version))
    return refuse('the base of the fork ends at another version');
  return isLone ? base.version : fork.version + events.length;
};

const parse = (text: string): FilesProof => {
  try {
    const proof = JSON.parse(text) as FilesProof;
    if (proof.kind === 'antiphon-files-proof' && (proof.format as number) === 1 && proof.trees.length > 0)
      return proof;
  } catch (cause) {
    return refuse('the file is not JSON', cause);
  }
  return refuse('the file is no proof of files of this version');
};

const verifyTrees = ({ trees }: FilesProof, publicKeys: readonly KeyObject[]): ProvedFiles => {
  const fold = new FileFold<RecordedEvent>();
  let base: Base | null = null;
  let last: EventProof | undefined;
  for (const { events, proof } of trees) {
    last = verifyProof(renderProof(proof), publicKeys);
    checkChain(events, last);
    const { streamId } = last.event;
    base = {
      streamId,
      version: versionOf(events, base),
      isLone: events.length === 1 && forkOf(events) !== null,
    };
    for (const event of events) fold.apply(FileTreeEvent.parse(upcast(event)), event);
  }
  return last ? { files: fold.files, version: base?.version ?? 0, proof: last } : refuse('it has no tree');
};

/**
 * Verifies the proof of a tree without a database or a network, and returns its files. Throws
 * `PROOF.INVALID` with the reason.
 */
export const verifyFilesProof = (text: string, publicKeys: readonly KeyObject[]): ProvedFiles => {
  const proof = parse(text);
  try {
    return verifyTrees(proof, publicKeys);
  } catch (error) {
    if (isAppError(error)) throw error;
    return refuse('a field is missing or has another type', error);
  }
};
