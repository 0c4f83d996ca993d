import { join } from 'node:path';
import type pg from 'pg';
import { inTransaction, isDatabaseError } from '@antiphon/database';
import { invalid, isAppError } from '@antiphon/kernel';
import type { JsonObject } from '@antiphon/kernel';
import { genesisHash, verifyChain } from '../integrity/event-hash.js';
import type { EventMetadata, RecordedEvent } from '../event-store.port.js';
import { checkArchiveFile, readArchiveFile } from './archive-file.js';
import { checkArchiveName, listArchives } from './archive-log.js';
import type { Archived } from './archive-log.js';
import { listArchiveRequests, refuseArchiveRequest } from './archive-requests.js';
import type { ArchiveRequest } from './archive-requests.js';

const PAGE = 500;
/** Limits for a whole file; those of the pool suit requests. */
const LONG_TIMEOUTS = `set local statement_timeout = '15min'; set local idle_in_transaction_session_timeout = '15min'`;
/** Counts the lines of a file that equal a row of the log in every column. */
const SAME_SQL = `select count(*) as same from unnest($1::text[]) line
  cross join lateral jsonb_populate_record(null::events, line::jsonb) filed
  join events e on e.position = filed.position and e.position <= $2
  where e is not distinct from filed`;
const BEFORE_SQL = `select hash from archived_streams where workspace = $1 and stream_id = $2 and to_version = $3`;

interface Line {
  readonly position: number;
  readonly workspace: string;
  readonly stream_id: string;
  readonly stream_version: number;
  readonly category: string;
  readonly event_id: string;
  readonly type: string;
  readonly schema_version: number;
  readonly data: JsonObject;
  readonly metadata: EventMetadata;
  readonly recorded_at: string;
  /** Hex after `\x`. */
  readonly hash: string;
}

const toEvent = (line: Line): RecordedEvent => ({
  position: line.position,
  workspace: line.workspace,
  streamId: line.stream_id,
  streamVersion: line.stream_version,
  category: line.category,
  eventId: line.event_id,
  type: line.type,
  schemaVersion: line.schema_version,
  data: line.data,
  metadata: line.metadata,
  recordedAt: line.recorded_at,
  hash: line.hash.slice(2),
});

/** Part of an event stream in a file, and the end of its chain so far. */
interface FiledStream {
  readonly workspace: string;
  readonly streamId: string;
  readonly from: number;
  to: number;
  /** Hex. */
  hash: string;
}

/** Compares a file with the log: every line with its row, and every chain with its start. */
class FileCheck {
  readonly streams: FiledStream[] = [];
  events = 0;

  constructor(
    private readonly client: pg.ClientBase,
    private readonly request: ArchiveRequest,
  ) {}

  async add(lines: readonly string[]): Promise<void> {
    const { rows } = await this.client.query<{ same: string }>(SAME_SQL, [lines, this.request.cutPosition]);
    if (Number(rows[0]?.same) !== lines.length) this.refuse('has an event that the log does not have');
    const events = lines.map((line) => toEvent(JSON.parse(line) as Line));
    for (let start = 0; start < events.length;) {
      const { workspace, streamId } = events[start] as RecordedEvent;
      let end = start + 1;
      while (events[end]?.streamId === streamId && events[end]?.workspace === workspace) end++;
      await this.addPart(events.slice(start, end));
      start = end;
    }
    this.events += events.length;
  }

  private async addPart(part: readonly RecordedEvent[]): Promise<void> {
    const first = part[0] as RecordedEvent;
    const stream = await this.streamOf(first);
    const verdict = verifyChain(part, { version: stream.to, hash: stream.hash });
    if (!verdict.isIntact)
      return this.refuse(`breaks the chain of ${verdict.event.streamId}: ${verdict.reason}`);
    stream.to = verdict.version;
    stream.hash = verdict.hash;
  }

  /** Returns the last stream if the event continues it, else a new one. */
  private async streamOf(event: RecordedEvent): Promise<FiledStream> {
    const last = this.streams.at(-1);
    const { workspace, streamId, streamVersion: from } = event;
    if (last?.streamId === streamId && last.workspace === workspace) return last;
    const hash = await this.hashBefore(event);
    const stream = { workspace, streamId, from, to: from - 1, hash };
    this.streams.push(stream);
    return stream;
  }

  private async hashBefore({ workspace, streamId, streamVersion }: RecordedEvent): Promise<string> {
    if (streamVersion === 1) return genesisHash(workspace).toString('hex');
    const { rows } = await this.client.query<{ hash: Buffer }>(BEFORE_SQL, [
      ...[workspace, streamId, streamVersion - 1],
    ]);
    return rows[0]?.hash.toString('hex') ?? this.refuse(`does not begin where the log of ${streamId} does`);
  }

  private refuse(reason: string): never {
    throw invalid('LOG.ARCHIVE_DAMAGED', `the archive file ${this.request.file} ${reason}`);
  }
}

/** Reads and compares the whole file. Rejects with `LOG.ARCHIVE_DAMAGED`. */
const checkFile = async (
  client: pg.ClientBase,
  folder: string,
  request: ArchiveRequest,
): Promise<FileCheck> => {
  checkArchiveName(request.file);
  const file = join(folder, request.file);
  await checkArchiveFile(file, request.sha256);
  const check = new FileCheck(client, request);
  // Every event of the file has a position of its own, up to that of the cut.
  const expected = { archiveId: request.archiveId, events: request.cutPosition };
  try {
    for await (const lines of readArchiveFile(file, expected, PAGE)) await check.add(lines);
  } catch (error) {
    // Not gzip, or a line that is not JSON; errors of the database keep their meaning.
    if (isAppError(error) || isDatabaseError(error)) throw error;
    throw invalid('LOG.ARCHIVE_DAMAGED', `the archive file ${request.file} cannot be read`, { cause: error });
  }
  return check;
};

const ARCHIVE_SQL = 'select antiphon_archive($1, $2, $3, $4, $5, $6, $7, $8, $9)';

/**
 * Takes the events of a request out of the log, in one transaction. The pool's role is the
 * archiver. Believes nothing of the request: each line of the file must equal its row of the log,
 * and each chain must be whole. Rejects with `LOG.ARCHIVE_DAMAGED`, `DATABASE.…` or
 * `LOG.UNAVAILABLE`; only after a lost connection the events may have left.
 */
export const executeArchive = (pool: pg.Pool, folder: string, request: ArchiveRequest): Promise<Archived> =>
  inTransaction(pool, async (client) => {
    await client.query(LONG_TIMEOUTS);
    const { streams, events } = await checkFile(client, folder, request);
    const { archiveId, file, sha256, cutPosition } = request;
    await client.query(ARCHIVE_SQL, [
      ...[archiveId, file, sha256, cutPosition],
      streams.map(({ workspace }) => workspace),
      streams.map(({ streamId }) => streamId),
      streams.map(({ from }) => from),
      streams.map(({ to }) => to),
      streams.map(({ hash }) => Buffer.from(hash, 'hex')),
    ]);
    return { archiveId, file, cutPosition, streams: streams.length, events };
  });

/** Result of one request: the archive, or the error for which it was refused. */
export type ArchiveOutcome =
  | { readonly request: ArchiveRequest; readonly archived: Archived }
  | { readonly request: ArchiveRequest; readonly refusal: Error };

const GROWN = '40001';
const causeOf = (error: unknown): { readonly code?: unknown; readonly message?: unknown } =>
  ((error as Error).cause ?? {}) as { code?: unknown; message?: unknown };
/** True where the same request may succeed later: the database could not be reached or was busy. */
const isRetried = (error: unknown): boolean =>
  isAppError(error) && error.code === 'LOG.UNAVAILABLE' && causeOf(error).code !== GROWN;
/** Returns the reason that the function of the database names, else the error's own message. */
const reasonOf = (error: unknown): string => {
  const { message } = causeOf(error);
  return typeof message === 'string' ? message : (error as Error).message;
};

const findArchive = async (pool: pg.Pool, archiveId: string): Promise<Archived | undefined> =>
  (await listArchives(pool)).find((known) => known.archiveId === archiveId);

/** Executes a request, or refuses it for good. Rejects only where a later try may succeed. */
export const settleArchiveRequest = async (
  pool: pg.Pool,
  folder: string,
  request: ArchiveRequest,
): Promise<ArchiveOutcome> => {
  try {
    return { request, archived: await executeArchive(pool, folder, request) };
  } catch (error) {
    if (isRetried(error)) throw error;
    // Another archiver may have executed it at the same time.
    const archived = await findArchive(pool, request.archiveId);
    if (archived) return { request, archived };
    await refuseArchiveRequest(pool, request.archiveId, reasonOf(error));
    return { request, refusal: error as Error };
  }
};

/** Settles every request that waits, oldest first. The pool's role is the archiver. */
export const settleArchiveRequests = async (pool: pg.Pool, folder: string): Promise<ArchiveOutcome[]> => {
  const outcomes: ArchiveOutcome[] = [];
  for (const request of await listArchiveRequests(pool))
    if (request.refusal === null) outcomes.push(await settleArchiveRequest(pool, folder, request));
  return outcomes;
};
