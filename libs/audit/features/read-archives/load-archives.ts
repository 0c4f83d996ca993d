import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import type pg from 'pg';
import { violation } from '@antiphon/audit-domain';
import type { Finding } from '@antiphon/audit-domain';
import { nowhere } from '../audit-report.js';
import type { About } from '../audit-report.js';

export const archivesAreWhole: About = {
  name: 'archives-are-whole',
  about:
    'every archive file is there, is the one that was written, and ends each event stream where its checkpoint says',
  counts: 'archive files',
};

export interface Archive {
  readonly archive_id: string;
  readonly file: string;
  readonly sha256: Buffer;
  readonly events: string;
}

/** What the archives of a log came to. */
export interface LoadedArchives {
  readonly ids: readonly string[];
  readonly findings: readonly Finding[];
  /** Whether the session now reads the log with all that has left it. */
  readonly whole: boolean;
}

const PAGE = 1_000;

export const archivesOf = async (client: pg.ClientBase): Promise<readonly Archive[]> =>
  (
    await client.query<Archive>(
      'select archive_id, file, sha256, events from log_archives order by archive_id',
    )
  ).rows;

/**
 * From here on this session reads `events` with what has left them: temporary names come before all others. Rows of
 * the files go to the database's disk, so that any number of them is merged in both orders without being held here.
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

const hashOf = async (file: string): Promise<Buffer> => {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  return hash.digest();
};

const insertFile = async (client: pg.ClientBase, file: string): Promise<number> => {
  const source = createReadStream(file);
  const gunzip = createGunzip();
  source.on('error', (error) => gunzip.destroy(error));
  let page: string[] = [];
  let rows = -1; // the first line is no event
  const flush = async (): Promise<void> => {
    if (page.length > 0) await client.query(INSERT_SQL, [page]);
    page = [];
  };
  for await (const line of createInterface({ input: source.pipe(gunzip) })) {
    if (rows++ < 0) continue;
    page.push(line);
    if (page.length === PAGE) await flush();
  }
  await flush();
  return rows;
};

const found = ({ file }: Pick<Archive, 'file'>, message: string): Finding =>
  violation(nowhere(''), `the archive file ${file} ${message}`);

const loadOne = async (
  client: pg.ClientBase,
  folder: string,
  archive: Archive,
): Promise<{ findings: Finding[]; read: boolean }> => {
  const file = join(folder, archive.file);
  try {
    const same = (await hashOf(file)).equals(archive.sha256);
    const rows = await insertFile(client, file);
    const counted =
      rows === Number(archive.events) ? [] : [found(archive, `has ${rows} events, not ${archive.events}`)];
    const changed = same
      ? []
      : [found(archive, 'was changed: its SHA-256 is not the one that was written down')];
    return { findings: [...changed, ...counted], read: true };
  } catch (error) {
    return {
      findings: [found(archive, `cannot be read in ${folder}: ${(error as Error).message}`)],
      read: false,
    };
  }
};

const checkpointsIn = async (client: pg.ClientBase): Promise<Finding[]> => {
  const { rows } = await client.query<{ workspace: string; stream_id: string }>(CHECKPOINTS_SQL);
  return rows.map(({ workspace, stream_id: streamId }) =>
    violation(nowhere(workspace, streamId), `no archive ends ${streamId} with the hash of its checkpoint`),
  );
};

/** Reads every archive of the log into this session, outside of a transaction. A log that nothing has left costs one query. */
export const loadArchives = async (client: pg.ClientBase, folder: string): Promise<LoadedArchives> => {
  const archives = await archivesOf(client);
  if (archives.length === 0) return { ids: [], findings: [], whole: true };
  await client.query('discard temporary');
  await client.query(BEGIN_SQL);
  const loaded = [];
  for (const archive of archives) loaded.push(await loadOne(client, folder, archive));
  await client.query(END_SQL);
  const whole = loaded.every(({ read }) => read);
  return {
    ids: archives.map(({ archive_id: id }) => id),
    findings: [...loaded.flatMap(({ findings }) => findings), ...(whole ? await checkpointsIn(client) : [])],
    whole,
  };
};

/** Ends what `loadArchives` began: the session reads the log as it is. */
export const forgetArchives = async (client: pg.ClientBase, { ids }: LoadedArchives): Promise<void> => {
  if (ids.length > 0) await client.query('discard temporary');
};
