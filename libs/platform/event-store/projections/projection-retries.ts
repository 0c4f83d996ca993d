import type pg from 'pg';
import { acrossWorkspaces, inTransaction } from '@antiphon/database';
import { notFound } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import type { RecordedEvent } from '../event-store.port.js';
import { createLogReader } from '../read/log-reader.js';
import type { ParkedEvent } from './projection-batch.js';
import { lockCheckpoint } from './projection-checkpoint.js';
import type { ProjectionDefinition, ProjectionSource } from './projection-definition.js';
import { PROCESS_LOST, describeError, isPoison, retryDelayAfter } from './projection-parking.js';

/** A projection whose parked streams can be retried; the pool may be any. */
export type ReplaySource = Pick<ProjectionSource, 'pool' | 'name' | 'handle' | 'retryDelaysMs'>;

export interface ReplayFilter {
  /** Only this event stream. */
  readonly streamId?: string | undefined;
  /** Only streams of this workspace. */
  readonly workspace?: string | undefined;
  /** Only streams whose retry is due; by default all parked streams, once. */
  readonly onlyDue?: boolean;
  /** False to leave out streams whose event ended its process. Default: true, as for an operator. */
  readonly withLost?: boolean;
}

/** A stream whose retry failed. */
export interface StillParked {
  readonly workspace: string;
  readonly streamId: string;
  readonly position: number;
  readonly tries: number;
  /** False once the stream waits for a replay by the operator. */
  readonly willRetry: boolean;
  readonly error: unknown;
}

export interface ReplayResult {
  readonly replayed: number;
  readonly stillParked: readonly StillParked[];
}

interface ParkedRow {
  readonly workspace: string;
  readonly stream_id: string;
  readonly position: string;
  readonly tries: number;
}

const PAGE = 500;

/** Yields a parked stream from its failed event to the checkpoint: events that were not applied. */
async function* readMissedEvents(
  client: pg.ClientBase,
  { workspace, stream_id: streamId, position: failed }: ParkedRow,
  checkpoint: number,
): AsyncGenerator<RecordedEvent, void, undefined> {
  const log = createLogReader(client);
  let fromVersion = 1;
  for (let hasMore = true; hasMore;) {
    const page = await log.readStreamPage(workspace, streamId, { fromVersion, limit: PAGE });
    yield* page.events.filter(({ position }) => position >= Number(failed) && position <= checkpoint);
    fromVersion += page.events.length;
    hasMore = page.hasMore;
  }
}

/** Applies events one by one and returns the first that fails. Those before it stay applied. */
const applyUntilFailure = async (
  client: pg.ClientBase,
  { handle }: ReplaySource,
  events: AsyncIterable<RecordedEvent>,
): Promise<ParkedEvent | null> => {
  for await (const event of events) {
    await client.query('savepoint antiphon_event');
    try {
      await handle(client, [event]);
    } catch (error) {
      if (!isPoison(error)) throw error;
      await client.query('rollback to savepoint antiphon_event');
      return { event, error };
    }
    await client.query('release savepoint antiphon_event');
  }
  return null;
};

const KEY = 'projection = $1 and workspace = $2 and stream_id = $3';

const FAILED_SQL = `update projection_parked set position = $4, reason = $5, tries = $6,
    retry_at = clock_timestamp() + $7 * interval '1 millisecond'
  where ${KEY}`;

/** Records a failed retry. The count of tries starts again for a later event of the stream. */
const recordFailure = async (
  client: pg.ClientBase,
  { name, retryDelaysMs }: ReplaySource,
  row: ParkedRow,
  { event: { position }, error }: ParkedEvent,
): Promise<StillParked> => {
  const { workspace, stream_id: streamId } = row;
  const tries = position === Number(row.position) ? row.tries + 1 : 1;
  const delay = retryDelayAfter(tries, retryDelaysMs);
  await client.query(FAILED_SQL, [name, workspace, streamId, position, describeError(error), tries, delay]);
  return { workspace, streamId, position, tries, willRetry: delay !== null, error };
};

const ROW_SQL = `select workspace, stream_id, position, tries from projection_parked where ${KEY}`;

/**
 * Retries one stream under the checkpoint's lock. Returns `skipped` when the stream is no longer
 * parked. A due retry is also skipped when another process holds the lock or has retried the
 * stream. A replay waits for the lock instead: the runner of a busy projection holds it most of the
 * time.
 */
const replayStream = (
  source: ReplaySource,
  seen: ParkedRow,
  onlyDue: boolean,
): Promise<'replayed' | 'skipped' | StillParked> =>
  inTransaction(source.pool, async (client) => {
    const checkpoint = await lockCheckpoint(client, source.name, { wait: !onlyDue });
    if (checkpoint === null) return 'skipped';
    const key = [source.name, seen.workspace, seen.stream_id];
    const [row] = (await client.query<ParkedRow>(ROW_SQL, key)).rows;
    if (row === undefined) return 'skipped';
    if (onlyDue && (row.position !== seen.position || row.tries !== seen.tries)) return 'skipped';
    const failed = await applyUntilFailure(client, source, readMissedEvents(client, row, checkpoint));
    if (failed) return recordFailure(client, source, row, failed);
    await client.query(`delete from projection_parked where ${KEY}`, key);
    return 'replayed';
  });

const PARKED_SQL = `select workspace, stream_id, position, tries from projection_parked
  where projection = $1 and ($2::text is null or stream_id = $2) and (not $3 or retry_at <= clock_timestamp())
    and ($4::text is null or workspace = $4) and ($5 or reason not like '${PROCESS_LOST}%')
  order by position`;

/**
 * Retries parked streams, each in its own transaction, while the projection runs. Applies the
 * events that a stream missed. If one of them fails, those before it stay applied.
 */
export const replayParked = async (
  source: ReplaySource,
  { streamId, workspace, onlyDue = false, withLost = true }: ReplayFilter = {},
): Promise<ReplayResult> => {
  const values = [source.name, streamId ?? null, onlyDue, workspace ?? null, withLost];
  const { rows } = await acrossWorkspaces(source.pool).query<ParkedRow>(PARKED_SQL, values);
  const stillParked: StillParked[] = [];
  let replayed = 0;
  for (const row of rows) {
    const outcome = await replayStream(source, row, onlyDue);
    if (outcome === 'replayed') replayed++;
    else if (outcome !== 'skipped') stillParked.push(outcome);
  }
  return { replayed, stillParked };
};

/** Parked streams to replay; all of them without a field. */
export interface ReplaySelection {
  readonly workspace?: string | undefined;
  readonly projection?: string | undefined;
  readonly streamId?: string | undefined;
}

export interface ReplaySummary {
  readonly replayed: number;
  /** Streams that stay parked. */
  readonly failed: { readonly projection: string; readonly streamId: string; readonly reason: string }[];
}

/**
 * Retries the selected parked streams of these projections. Throws `LOG.PROJECTION_NOT_FOUND` for a
 * projection that is none of them.
 */
export const replayParkedStreams = async (
  pool: pg.Pool,
  definitions: readonly ProjectionDefinition[],
  { workspace, projection, streamId }: ReplaySelection,
): Promise<ReplaySummary> => {
  const selected = definitions.filter(({ name }) => projection === undefined || name === projection);
  if (projection !== undefined && selected.length === 0)
    throw notFound('LOG.PROJECTION_NOT_FOUND', `there is no projection ${projection}`);
  const failed: { projection: string; streamId: string; reason: string }[] = [];
  let replayed = 0;
  for (const { name, handle } of selected) {
    const outcome = await replayParked({ pool, name, handle }, { workspace, streamId });
    replayed += outcome.replayed;
    for (const { streamId: parked, error } of outcome.stillParked)
      failed.push({ projection: name, streamId: parked, reason: describeError(error) });
  }
  return { replayed, failed };
};

const NEXT_SQL = `select ceil(extract(epoch from min(retry_at) - clock_timestamp()) * 1000)::integer as ms
  from projection_parked where projection = $1`;

/** Minimum wait after a retry, ms: another process may be retrying the same stream. */
const MIN_WAIT_MS = 50;

/** Schedules the retries of a projection's parked streams and logs their outcomes. */
export class ProjectionRetries {
  /** False while no retry can be due, so that a healthy projection does not query for one. */
  private hasScheduled = false;

  constructor(
    private readonly source: ReplaySource,
    private readonly logger: Logger,
  ) {}

  /** Notes that a stream is parked. */
  schedule(): void {
    this.hasScheduled = true;
  }

  /** Retries all parked streams, due or not: a new start of the process may bring a fix. */
  async retryAll(): Promise<void> {
    this.report(await replayParked(this.source, { withLost: false }));
    this.hasScheduled = true;
  }

  /**
   * Retries the due streams. Returns the time until the next retry, ms; Infinity if there is none.
   */
  async retryDue(): Promise<number> {
    if (!this.hasScheduled) return Infinity;
    const delay = await this.readNextDelay();
    if (delay === null) this.hasScheduled = false;
    if (delay === null || delay > 0) return delay ?? Infinity;
    this.report(await replayParked(this.source, { onlyDue: true }));
    return Math.max(MIN_WAIT_MS, (await this.readNextDelay()) ?? Infinity);
  }

  private async readNextDelay(): Promise<number | null> {
    const queries = acrossWorkspaces(this.source.pool);
    const { rows } = await queries.query<{ ms: number | null }>(NEXT_SQL, [this.source.name]);
    const ms = rows[0]?.ms ?? null;
    return ms === null ? null : Math.max(0, ms);
  }

  private report({ replayed, stillParked }: ReplayResult): void {
    const projection = this.source.name;
    if (replayed > 0) this.logger.info({ projection, replayed }, 'parked streams replayed');
    for (const { error, willRetry, ...stream } of stillParked) {
      const fields = { err: error, projection, ...stream };
      if (willRetry) this.logger.warn(fields, 'event projection failed, retry scheduled');
      else this.logger.error({ ...fields, alert: true }, 'event projection failed, stream parked');
    }
  }
}
