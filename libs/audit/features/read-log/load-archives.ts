import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { basename, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type pg from 'pg';
import { type Finding, violation } from '@antiphon/audit-domain';
import { readArchiveFile } from '@antiphon/event-store';
import { type About, nowhere } from '../audit-report.js';

export const archivesAreWhole: About = {
  name: 'archives-are-whole',
  about: 'every archive file exists unchanged and ends each event stream with the hash of its checkpoint',
  counts: 'archive files',
};

interface Archive {
  readonly archive_id: string;
  readonly file: string;
  readonly sha256: Buffer;
  readonly events: string;
}

/** Archives that were loaded into a session, and their findings. */
export interface LoadedArchives {
  readonly ids: readonly string[];
  readonly findings: readonly Finding[];
  /** True if every file was read: the session then sees the whole log. */
  readonly isComplete: boolean;
}

const PAGE = 1_000;
/** Bytes to which a file with another SHA-256 may expand: it may be made to fill the disk. */
const MAX_CHANGED_BYTES = 2 ** 30;

const listArchives = async (client: pg.ClientBase): Promise<readonly Archive[]> =>
  (
    await client.query<Archive>(
      'select archive_id, file, sha256, events from log_archives order by archive_id',
    )
  ).rows;

/**
 * Creates a temporary view that hides `events` and includes the archived events. The rows go to the
 * database's disk, so that both passes read any number of them without memory in this process.
 */
const BEGIN_SQL = `create temporary table archived_events (like public.events);
  create temporary view events as select * from public.events union all select * from pg_temp.archived_events`;
const INSERT_SQL = `insert into pg_temp.archived_events
  select e.* from unnest($1::text[]) l cross join lateral jsonb_populate_record(null::public.events, l::jsonb) e`;
const END_SQL = `create index on pg_temp.archived_events (position);
  create index on pg_temp.archived_events (workspace, stream_id, stream_version); analyze pg_temp.archived_events`;
const CHECKPOINTS_SQL = `select a.workspace, a.stream_id from archived_streams a
  left join pg_temp.archived_events e on e.workspace = a.workspace and e.stream_id = a.stream_id and e.stream_version = a.to_version
  where e.hash is distinct from a.hash order by 1, 2 limit 10`;

const hashFile = async (file: string): Promise<Buffer> => {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  return hash.digest();
};

/** Inserts the events of a file, of which `expected` bounds the number and the size. */
const insertFile = async (
  client: pg.ClientBase,
  file: string,
  expected: { readonly events: number; readonly bytes: number | undefined },
): Promise<number> => {
  let rows = 0;
  for await (const lines of readArchiveFile(file, expected, PAGE)) {
    await client.query(INSERT_SQL, [lines]);
    rows += lines.length;
  }
  return rows;
};

const found = ({ file }: Pick<Archive, 'file'>, message: string): Finding =>
  violation(nowhere(''), `the archive file ${file} ${message}`);

const loadOne = async (
  client: pg.ClientBase,
  folder: string,
  archive: Archive,
): Promise<{ findings: Finding[]; isRead: boolean }> => {
  if (basename(archive.file) !== archive.file)
    return { findings: [found(archive, 'names another folder')], isRead: false };
  const file = join(folder, archive.file);
  try {
    const isSame = (await hashFile(file)).equals(archive.sha256);
    const events = Number(archive.events);
    const rows = await insertFile(client, file, { events, bytes: isSame ? undefined : MAX_CHANGED_BYTES });
    const counted = rows === events ? [] : [found(archive, `has ${rows} events, not ${archive.events}`)];
    const changed = isSame ? [] : [found(archive, 'was changed: its SHA-256 is not the recorded one')];
    return { findings: [...changed, ...counted], isRead: true };
  } catch (error) {
    return {
      findings: [found(archive, `cannot be read in ${folder}: ${(error as Error).message}`)],
      isRead: false,
    };
  }
};

const checkCheckpoints = async (client: pg.ClientBase): Promise<Finding[]> => {
  const { rows } = await client.query<{ workspace: string; stream_id: string }>(CHECKPOINTS_SQL);
  return rows.map(({ workspace, stream_id: streamId }) =>
    violation(nowhere(workspace, streamId), `no archive ends ${streamId} with the hash of its checkpoint`),
  );
};

/** Loads every archive of the log into this session, outside of a transaction. */
export const loadArchives = async (client: pg.ClientBase, folder: string): Promise<LoadedArchives> => {
  const archives = await listArchives(client);
  if (archives.length === 0) return { ids: [], findings: [], isComplete: true };
  await client.query('discard temporary');
  await client.query(BEGIN_SQL);
  const loaded = [];
  for (const archive of archives) loaded.push(await loadOne(client, folder, archive));
  await client.query(END_SQL);
  const isComplete = loaded.every(({ isRead }) => isRead);
  return {
    ids: archives.map(({ archive_id: id }) => id),
    findings: [
      ...loaded.flatMap(({ findings }) => findings),
      ...(isComplete ? await checkCheckpoints(client) : []),
    ],
    isComplete,
  };
};

/** Drops the temporary tables of `loadArchives`. */
export const unloadArchives = async (client: pg.ClientBase, { ids }: LoadedArchives): Promise<void> => {
  if (ids.length > 0) await client.query('discard temporary');
};

/** True if no event was archived or restored after `loadArchives`. */
export const isSameLog = async (client: pg.ClientBase, { ids }: LoadedArchives): Promise<boolean> =>
  (await listArchives(client)).map(({ archive_id: id }) => id).join() === ids.join();
