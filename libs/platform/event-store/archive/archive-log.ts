import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type pg from 'pg';
import { inTransaction, isConnectionLost } from '@antiphon/database';
import { writeArchiveFile } from './archive-file.js';
import { findStreamsAtRest } from './streams-at-rest.js';
import type { LeavingStream, RestRule } from './streams-at-rest.js';

export interface ArchiveOptions {
  readonly pool: pg.Pool;
  /** Folder of the archive files. */
  readonly folder: string;
  readonly rules: readonly RestRule[];
  /** Only event streams whose last event lies before this time (ISO 8601), or at this position or before it. */
  readonly before: { readonly time: string } | { readonly position: number };
  /** Only event streams of this workspace. */
  readonly workspace?: string | undefined;
  /** Events of one file. */
  readonly maxEvents?: number;
  /** Stops the writing of the file; then nothing leaves, and the call rejects with its reason. */
  readonly signal?: AbortSignal;
}

/** One file of events that have left the log. */
export interface Archived {
  readonly archiveId: string;
  readonly file: string;
  readonly cutPosition: number;
  readonly streams: number;
  readonly events: number;
}

const MAX_EVENTS = 200_000;
const PAGE = 500;
/** For one look at the whole log; the pool's own limit is for requests. */
const PATIENCE = `set local statement_timeout = '15min'; set local idle_in_transaction_session_timeout = '15min'`;

const BEFORE_SQL = `select coalesce((select min(position) - 1 from events where recorded_at >= $1::timestamptz),
  (select max(position) from events), 0) as cut`;
/** The newest event stays, since positions go on from it; so does what a projection has not seen. */
const LAST_SQL = `select gen_random_uuid() as id, least(
  (select coalesce(max(position), 0) - 1 from events), (select min(position) from projection_checkpoints)) as last`;

const cutOf = async (client: pg.ClientBase, before: ArchiveOptions['before']): Promise<number> => {
  if ('position' in before) return before.position;
  const { rows } = await client.query<{ cut: string }>(BEFORE_SQL, [before.time]);
  return Number(rows[0]?.cut);
};

const columnsOf = (streams: readonly LeavingStream[]): unknown[] => [
  streams.map(({ workspace }) => workspace),
  streams.map(({ streamId }) => streamId),
  streams.map(({ fromVersion }) => fromVersion),
  streams.map(({ toVersion }) => toVersion),
];

async function* linesOf(
  client: pg.ClientBase,
  streams: readonly LeavingStream[],
  cut: number,
  signal: AbortSignal | undefined,
) {
  await client.query(
    `declare leaving no scroll cursor for
       select to_jsonb(e)::text as line
       from unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) s (workspace, stream_id, from_version, to_version)
       join events e on e.workspace = s.workspace and e.stream_id = s.stream_id
         and e.stream_version between s.from_version and s.to_version
       where e.position <= $5 order by e.workspace, e.stream_id, e.stream_version`,
    [...columnsOf(streams), cut],
  );
  for (;;) {
    signal?.throwIfAborted();
    const { rows } = await client.query<{ line: string }>(`fetch ${PAGE} from leaving`);
    if (rows.length === 0) return;
    yield rows.map(({ line }) => line);
  }
}

interface Written extends Archived {
  readonly leaving: readonly LeavingStream[];
  readonly sha256: Buffer;
}

const write = (options: ArchiveOptions): Promise<Written | null> =>
  inTransaction(options.pool, async (client) => {
    await client.query('set transaction isolation level repeatable read, read only');
    await client.query(PATIENCE);
    const { rows } = await client.query<{ last: string; id: string }>(LAST_SQL);
    const [head] = rows;
    const cutPosition = Math.min(await cutOf(client, options.before), Number(head?.last));
    const archiveId = head?.id ?? '';
    const leaving = await findStreamsAtRest(client, {
      ...{ rules: options.rules, cut: cutPosition, workspace: options.workspace },
      maxEvents: options.maxEvents ?? MAX_EVENTS,
    });
    if (leaving.length === 0) return null;
    const name = `events-${String(cutPosition).padStart(12, '0')}-${archiveId}.jsonl.gz`;
    const header = { kind: 'antiphon-archive', format: 1, archiveId, cutPosition } as const;
    const lines = linesOf(client, leaving, cutPosition, options.signal);
    const sha256 = await writeArchiveFile(join(options.folder, name), header, lines);
    const events = leaving.reduce((sum, stream) => sum + stream.events, 0);
    return { archiveId, file: name, cutPosition, streams: leaving.length, events, leaving, sha256 };
  });

const takeOut = (pool: pg.Pool, { archiveId, file, sha256, cutPosition, leaving }: Written): Promise<void> =>
  inTransaction(pool, async (client) => {
    await client.query(PATIENCE);
    const values = [archiveId, file, sha256, cutPosition];
    const hashes = leaving.map(({ hash }) => hash);
    await client.query('select antiphon_archive($1, $2, $3, $4, $5, $6, $7, $8, $9)', [
      ...[...values, ...columnsOf(leaving), hashes],
    ]);
  });

/**
 * Writes the oldest event streams at rest to one file, and takes them out of the log once it is on the disk. Answers
 * null when there is nothing to archive. Appends and reads go on meanwhile. Rejects with `DATABASE.…` or `LOG.UNAVAILABLE`;
 * then nothing has left: also when a stream has grown meanwhile (transient). Only where the connection broke may they
 * have left all the same; the file stays for that.
 */
export const archiveEvents = async (options: ArchiveOptions): Promise<Archived | null> => {
  const written = await write(options);
  if (written === null) return null;
  try {
    await takeOut(options.pool, written);
  } catch (error) {
    // Nobody knows whether it was committed where the connection broke: then the file may be all that there is of them.
    if (!isConnectionLost((error as Error).cause))
      await rm(join(options.folder, written.file), { force: true });
    throw error;
  }
  const { archiveId, file, cutPosition, streams, events } = written;
  return { archiveId, file, cutPosition, streams, events };
};
