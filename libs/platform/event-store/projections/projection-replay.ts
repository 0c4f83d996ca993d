import type pg from 'pg';
import { inTransaction } from '@antiphon/database';
import type { RecordedEvent } from '../event-store.port.js';
import { createLogReader } from '../read/log-reader.js';
import { holdCheckpoint } from './projection-checkpoint.js';
import { delayAfter, isPoison, reasonOf } from './projection-parking.js';
import type { ProjectionSource } from './projection-source.js';

/** What of a projection is needed to try its parked streams again; the pool may be any. */
export type ReplaySource = Pick<ProjectionSource, 'pool' | 'name' | 'handle' | 'retryDelaysMs'>;

export interface ReplayFilter {
  /** Only this event stream, of any workspace. */
  readonly streamId?: string;
  /** Only those whose next try is due, and by their count of tries; else all, once. */
  readonly onlyDue?: boolean;
}

interface ParkedRow {
  readonly workspace: string;
  readonly stream_id: string;
  readonly position: string;
  readonly tries: number;
}

/** A stream that was tried again and could not be applied to its end. */
export interface StillParked {
  readonly workspace: string;
  readonly streamId: string;
  readonly position: number;
  readonly tries: number;
  /** False once it waits for a replay. */
  readonly willRetry: boolean;
  readonly error: unknown;
}

/** What became of the streams that were tried again. */
export interface ReplayResult {
  readonly replayed: number;
  readonly stillParked: readonly StillParked[];
}

/** Events of a parked stream from where it stopped up to the checkpoint: what the projection has not seen. */
const missedEvents = async (
  client: pg.ClientBase,
  row: ParkedRow,
  upTo: number,
): Promise<RecordedEvent[]> => {
  const events = await createLogReader(client).readStream(row.workspace, row.stream_id);
  return events.filter(({ position }) => position >= Number(row.position) && position <= upTo);
};

interface Poisoned {
  readonly event: RecordedEvent;
  readonly error: unknown;
}

/** One by one, so that what can be applied is; answers the event that cannot. */
const applyUntilPoison = async (
  client: pg.ClientBase,
  { handle }: ReplaySource,
  events: readonly RecordedEvent[],
): Promise<Poisoned | null> => {
  for (const event of events) {
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

const STAY_SQL = `update projection_parked set position = $4, reason = $5, tries = $6,
    retry_at = clock_timestamp() + $7 * interval '1 millisecond'
  where ${KEY}`;

/** Counts the try; an event further on in the stream begins its own count. */
const stayParked = async (
  client: pg.ClientBase,
  { name, retryDelaysMs }: ReplaySource,
  row: ParkedRow,
  { event, error }: Poisoned,
): Promise<StillParked> => {
  const { workspace, stream_id: streamId } = row;
  const tries = event.position === Number(row.position) ? row.tries + 1 : 1;
  const delay = delayAfter(tries, retryDelaysMs);
  await client.query(STAY_SQL, [name, workspace, streamId, event.position, reasonOf(error), tries, delay]);
  return { workspace, streamId, position: event.position, tries, willRetry: delay !== null, error };
};

const FRESH_SQL = `select workspace, stream_id, position, tries from projection_parked where ${KEY}`;

/**
 * `skipped`: there is nothing to be tried any more; or it is one that is due, and another process has the checkpoint or
 * has tried it meanwhile. Whoever asks for a replay waits instead: a busy projection's checkpoint is held most of the time.
 */
const replayOne = (
  source: ReplaySource,
  seen: ParkedRow,
  due: boolean,
): Promise<'replayed' | 'skipped' | StillParked> =>
  inTransaction(source.pool, async (client) => {
    const checkpoint = await holdCheckpoint(client, source.name, { wait: !due });
    if (checkpoint === null) return 'skipped';
    const key = [source.name, seen.workspace, seen.stream_id];
    const [row] = (await client.query<ParkedRow>(FRESH_SQL, key)).rows;
    if (row === undefined) return 'skipped';
    if (due && (row.position !== seen.position || row.tries !== seen.tries)) return 'skipped';
    const poisoned = await applyUntilPoison(client, source, await missedEvents(client, row, checkpoint));
    if (poisoned) return stayParked(client, source, row, poisoned);
    await client.query(`delete from projection_parked where ${KEY}`, key);
    return 'replayed';
  });

const PARKED_SQL = `select workspace, stream_id, position, tries from projection_parked
  where projection = $1 and ($2::text is null or stream_id = $2) and (not $3 or retry_at <= clock_timestamp())
  order by position`;

/**
 * Tries parked streams again, each in a transaction of its own, beside whoever moves the projection: after a fix, what it missed is applied. Where another
 * event of the stream cannot be handled, what is before it stays applied.
 */
export const replayParked = async (
  source: ReplaySource,
  { streamId, onlyDue = false }: ReplayFilter = {},
): Promise<ReplayResult> => {
  const { rows } = await source.pool.query<ParkedRow>(PARKED_SQL, [source.name, streamId ?? null, onlyDue]);
  const stillParked: StillParked[] = [];
  let replayed = 0;
  for (const row of rows) {
    const outcome = await replayOne(source, row, onlyDue);
    if (outcome === 'replayed') replayed++;
    else if (outcome !== 'skipped') stillParked.push(outcome);
  }
  return { replayed, stillParked };
};

const NEXT_SQL = `select ceil(extract(epoch from min(retry_at) - clock_timestamp()) * 1000)::integer as ms
  from projection_parked where projection = $1`;

/** In how many ms the next try is due; null when none is. */
export const nextReplayIn = async (pool: pg.Pool, name: string): Promise<number | null> => {
  const { rows } = await pool.query<{ ms: number | null }>(NEXT_SQL, [name]);
  const ms = rows[0]?.ms ?? null;
  return ms === null ? null : Math.max(0, ms);
};
