import { createHash, webcrypto } from 'node:crypto';
import type pg from 'pg';
import { bug, exhausted, notFound, rejected } from '@antiphon/kernel';
import { translateDatabaseError } from './database-error.js';
import { rareTailOf } from './rare-tail.js';
import { acrossWorkspaces, inWorkspace } from './workspace.js';

/** Bytes in the blob store. */
export interface StoredBytes {
  /** SHA-256, hex. */
  readonly digest: string;
  readonly size: number;
}

const HAS_SQL = `update file_blobs set written_at = clock_timestamp() where workspace = $1 and digest = $2
  and (is_cited or written_at > clock_timestamp() - interval '12 hours')
  returning erased_at is not null as is_erased`;
const PUT_SQL = `insert into file_blobs (workspace, digest, size, body, written_at)
  values ($1, $2, octet_length($3::bytea), $3::bytea, clock_timestamp())
  on conflict (workspace, digest) do update set written_at = excluded.written_at
  returning file_blobs.erased_at is not null as is_erased`;
const READ_SQL = 'select body, erased_at from file_blobs where workspace = $1 and digest = $2';
const READ_PART_SQL = `select substring(body from $3 + 1 for $4) as body, erased_at from file_blobs
  where workspace = $1 and digest = $2`;
const READ_MANY_SQL = `select digest, body from file_blobs
  where workspace = $1 and digest = any ($2) and erased_at is null`;
const SIZES_SQL = `select digest, size from file_blobs
  where workspace = $1 and digest = any ($2) and erased_at is null`;
const ERASED_SQL = `select digest from file_blobs
  where workspace = $1 and digest = any ($2) and erased_at is not null`;
// A row without a body stays, also of bytes that were never stored here.
const ERASE_SQL = `insert into file_blobs (workspace, digest, size, body, written_at, is_cited, erased_at)
  select $1, digest, 0, '', clock_timestamp(), true, clock_timestamp() from unnest($2::text[]) as given (digest)
  on conflict (workspace, digest) do update set body = '', is_cited = true, erased_at = excluded.erased_at
  where file_blobs.erased_at is null`;
/** Ends erasures whose process was killed between the fact and the bytes. */
const FINISH_SQL = `update file_blobs b set body = '', is_cited = true, erased_at = clock_timestamp()
  from events e where e.type = 'FileBytesErased' and e.workspace = b.workspace and e.data ->> 'digest' = b.digest
    and b.erased_at is null`;
// Written and moved files of all trees, also of forked sessions.
export const PATH_SQL = `select distinct e.stream_id, given.digest from (
    select stream_id, data from events where workspace = $1 and category in ('file', 'chat')
      and md5(data ->> 'path') = md5($2) and data ->> 'path' = $2
    union all
    select stream_id, data from events where workspace = $1 and type = 'FileMoved'
      and md5(data ->> 'to') = md5($2) and data ->> 'to' = $2) e,
  lateral (values (e.data ->> 'digest'), (e.data ->> 'before')) as given (digest)
  where given.digest is not null`;
const ALL_ERASED_SQL = 'select digest from file_blobs where workspace = $1 and erased_at is not null';
// Most bodies fail the first of the two. A digest has no comma.
const FIND_SQL = `select digest, is_binary from file_blobs
  where workspace = $1 and digest = any (string_to_array($2, ',')) and (is_binary
    or position($4::bytea in body) > 0 and position($3::bytea in body) > 0)`;
/** Facts of files and chats cite a digest, and attachments and results of sessions, by an index. */
const IS_CITED = `(exists (select from events e
    where e.workspace = b.workspace and e.category in ('file', 'chat') and e.data ->> 'digest' = b.digest)
  or exists (select from events e
    where e.workspace = b.workspace and e.type = 'ChatFileAttached' and e.data ->> 'digest' = b.digest)
  or exists (select from events e where e.workspace = b.workspace and e.type = 'ToolCallCompleted'
    and e.data ? 'stored' and e.data #>> '{stored,digest}' = b.digest))`;
/** Counts at most as many rows as the quota allows, and one. */
const UNCITED_SQL = `select count(*) as rows, coalesce(sum(size), 0) as bytes from (
  select size from file_blobs where workspace = $1 and not is_cited limit $2) uncited`;
const CITE_OWN_SQL = `update file_blobs b set is_cited = true
  where b.workspace = $1 and not b.is_cited and ${IS_CITED}`;
export const CITE_SQL = `update file_blobs b set is_cited = true
  where not b.is_cited and b.written_at < $1 and ${IS_CITED}`;
export const SWEEP_SQL = `delete from file_blobs where (workspace, digest) in (
  select b.workspace, b.digest from file_blobs b
  where not b.is_cited and b.written_at < $1 and not ${IS_CITED}
  order by b.written_at limit $2 for update skip locked)`;

interface PutRow {
  readonly is_erased: boolean;
}
interface ReadRow {
  readonly body: Buffer;
  readonly erased_at: Date | null;
}

/** Maximum number of rows without a citation in one workspace. */
const MAX_UNCITED_ROWS = 5_000;
/** Default of `[files] max_uncited_bytes`. */
const MAX_UNCITED_BYTES = 256 * 1_024 * 1_024;

/** Bodies up to this size are sent without asking first whether they are stored. */
const SMALL_BYTES = 256 * 1_024;
/** Maximum number of rows that one sweep deletes. */
const SWEEP_BATCH = 1_000;

const guard = async <T>(work: Promise<T>): Promise<T> => {
  try {
    return await work;
  } catch (error) {
    throw translateDatabaseError(error);
  }
};

/** Throws `FILE.BYTES_CHANGED` for bytes that were changed. Hashes them in another thread. */
const requireDigest = async (body: Uint8Array, digest: string): Promise<void> => {
  const bytes = body as Uint8Array<ArrayBuffer>;
  const found = Buffer.from(await webcrypto.subtle.digest('SHA-256', bytes)).toString('hex');
  if (found !== digest)
    throw bug('FILE.BYTES_CHANGED', `the stored bytes of ${digest} are not those that were written`);
};

/** Content-addressed bytes of a workspace. The log's facts cite them by their digest. */
export class BlobStore {
  /** `maxUncitedBytes` bounds the bytes of one workspace that no fact cites yet. */
  constructor(
    private readonly pool: pg.Pool,
    private readonly maxUncitedBytes = MAX_UNCITED_BYTES,
  ) {}

  /**
   * Stores bytes. A repeated write changes only the time that protects them from the sweep. Throws
   * `FILE.ERASED` for bytes that were erased. Throws `FILE.QUOTA` while the workspace has too many
   * that no fact cites: those of refused changes stay for a day.
   */
  async put(workspace: string, bytes: Uint8Array): Promise<StoredBytes> {
    const digest = createHash('sha256').update(bytes).digest('hex');
    const own = inWorkspace(this.pool, workspace);
    const has = { name: 'blob_has', text: HAS_SQL, values: [workspace, digest] };
    let [row] = bytes.byteLength > SMALL_BYTES ? (await guard(own.query<PutRow>(has))).rows : [];
    if (!row) {
      await this.requireRoom(workspace, bytes.byteLength);
      const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      const values = [workspace, digest, body];
      [row] = (await guard(own.query<PutRow>({ name: 'blob_put', text: PUT_SQL, values }))).rows;
    }
    if (row?.is_erased) throw rejected('FILE.ERASED', `the bytes of ${digest} were erased`);
    return { digest, size: bytes.byteLength };
  }

  /** Returns all bytes of a digest. Throws `FILE.NO_BYTES`, `FILE.ERASED` and `FILE.BYTES_CHANGED`. */
  async read(workspace: string, digest: string): Promise<Uint8Array> {
    const body = await this.readRow('blob_read', READ_SQL, [workspace, digest]);
    await requireDigest(body, digest);
    return body;
  }

  /** Returns a part of the bytes of a digest. Throws `FILE.NO_BYTES` and `FILE.ERASED`. */
  async readPart(workspace: string, digest: string, from: number, length: number): Promise<Uint8Array> {
    return this.readRow('blob_read_part', READ_PART_SQL, [workspace, digest, from, length]);
  }

  /** Returns the bytes of the digests that are stored. The caller bounds their sum. */
  async readMany(workspace: string, digests: readonly string[]): Promise<ReadonlyMap<string, Uint8Array>> {
    const { rows } = await guard(
      inWorkspace(this.pool, workspace).query<{ digest: string; body: Buffer }>({
        ...{ name: 'blob_read_many', text: READ_MANY_SQL, values: [workspace, digests] },
      }),
    );
    for (const { digest, body } of rows) await requireDigest(body, digest);
    return new Map(rows.map(({ digest, body }) => [digest, body]));
  }

  /**
   * Returns those of the digests whose bytes contain a text, or are binary: a zero is within the
   * first 8,000. No bytes leave the database.
   */
  async findContaining(
    workspace: string,
    digests: readonly string[],
    text: Uint8Array,
  ): Promise<ReadonlyMap<string, 'text' | 'binary'>> {
    const values = [workspace, digests.join(','), Buffer.from(text), Buffer.from(rareTailOf(text))];
    const { rows } = await guard(
      inWorkspace(this.pool, workspace).query<{ digest: string; is_binary: boolean }>({
        ...{ name: 'blob_find', text: FIND_SQL, values },
      }),
    );
    return new Map(rows.map(({ digest, is_binary: isBinary }) => [digest, isBinary ? 'binary' : 'text']));
  }

  /** Returns the sizes of the digests that are stored. */
  async sizes(workspace: string, digests: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const { rows } = await guard(
      inWorkspace(this.pool, workspace).query<{ digest: string; size: string }>({
        ...{ name: 'blob_sizes', text: SIZES_SQL, values: [workspace, digests] },
      }),
    );
    return new Map(rows.map(({ digest, size }) => [digest, Number(size)]));
  }

  /** Returns the digests that were erased. */
  async erasedOf(workspace: string, digests: readonly string[]): Promise<ReadonlySet<string>> {
    const { rows } = await guard(
      inWorkspace(this.pool, workspace).query<{ digest: string }>({
        ...{ name: 'blob_erased', text: ERASED_SQL, values: [workspace, digests] },
      }),
    );
    return new Set(rows.map(({ digest }) => digest));
  }

  /** Returns all erased digests of a workspace: few, as each is an act of an operator. */
  async allErased(workspace: string): Promise<ReadonlySet<string>> {
    const { rows } = await guard(
      inWorkspace(this.pool, workspace).query<{ digest: string }>({
        ...{ name: 'blob_all_erased', text: ALL_ERASED_SQL, values: [workspace] },
      }),
    );
    return new Set(rows.map(({ digest }) => digest));
  }

  /**
   * Returns the digests that files of a path had, in the trees of the workspace and of its forks.
   * Also returns the event streams of those facts.
   */
  async findPath(workspace: string, path: string): Promise<{ digests: Set<string>; streams: Set<string> }> {
    const { rows } = await guard(
      inWorkspace(this.pool, workspace).query<{ digest: string; stream_id: string }>({
        ...{ name: 'blob_path', text: PATH_SQL, values: [workspace, path] },
      }),
    );
    return {
      digests: new Set(rows.map(({ digest }) => digest)),
      streams: new Set(rows.map(({ stream_id }) => stream_id)),
    };
  }

  /** Erases bytes for ever. Their fact comes first: the sweep erases what a killed process left. */
  async erase(workspace: string, digests: readonly string[]): Promise<void> {
    const values = [workspace, digests];
    await guard(inWorkspace(this.pool, workspace).query({ name: 'blob_erase', text: ERASE_SQL, values }));
  }

  /** Deletes bytes that were written before a time and that no fact cites. Returns their number. */
  async sweep(before: string): Promise<number> {
    const everywhere = acrossWorkspaces(this.pool);
    await guard(everywhere.query(FINISH_SQL));
    await guard(everywhere.query(CITE_SQL, [before]));
    return (await guard(everywhere.query(SWEEP_SQL, [before, SWEEP_BATCH]))).rowCount ?? 0;
  }

  /** The rows of the last day count until one check has found which of them facts cite. */
  private async requireRoom(workspace: string, size: number): Promise<void> {
    if (await this.hasRoom(workspace, size)) return;
    await guard(inWorkspace(this.pool, workspace).query(CITE_OWN_SQL, [workspace]));
    if (await this.hasRoom(workspace, size)) return;
    const limit = this.maxUncitedBytes;
    const message = `the workspace has ${limit} bytes of refused or unfinished writes. They are deleted after a day`;
    throw exhausted('FILE.QUOTA', message, {
      data: { quota: 'max_uncited_bytes', limit, value: limit + size },
    });
  }

  private async hasRoom(workspace: string, size: number): Promise<boolean> {
    type Row = { rows: string; bytes: string };
    const query = { name: 'blob_uncited', text: UNCITED_SQL, values: [workspace, MAX_UNCITED_ROWS] };
    const [found] = (await guard(inWorkspace(this.pool, workspace).query<Row>(query))).rows;
    const { rows = '0', bytes = '0' } = found ?? {};
    return Number(rows) < MAX_UNCITED_ROWS && Number(bytes) + size <= this.maxUncitedBytes;
  }

  private async readRow(
    name: string,
    text: string,
    values: [string, string, ...unknown[]],
  ): Promise<Uint8Array> {
    const { rows } = await guard(inWorkspace(this.pool, values[0]).query<ReadRow>({ name, text, values }));
    const [row] = rows;
    if (!row) throw notFound('FILE.NO_BYTES', `the bytes of ${values[1]} are not stored`);
    if (row.erased_at !== null) throw notFound('FILE.ERASED', `the bytes of ${values[1]} were erased`);
    return row.body;
  }
}
