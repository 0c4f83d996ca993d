import type pg from 'pg';
import { acrossWorkspaces, inWorkspace, translateDatabaseError } from '@antiphon/database';
import { isAppError } from '@antiphon/kernel';
import type { RecordedEvent } from '../event-store.port.js';

export const toStreamKey = ({ workspace, streamId }: Pick<RecordedEvent, 'workspace' | 'streamId'>): string =>
  `${workspace} ${streamId}`;

const findSqlState = (error: unknown): string => {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const { code } = cause as { code?: unknown };
    if (typeof code === 'string' && /^(?=.*\d)[0-9A-Z]{5}$/.test(code)) return code;
  }
  return '';
};

/**
 * True when the event itself causes the error (a poison event). False when the database is away,
 * and for a missing table or privilege (SQLSTATE class 42): every event would fail and be parked.
 */
export const isPoison = (error: unknown): boolean => {
  if (isAppError(error) && (error.kind === 'transient' || error.code === 'LOG.EPOCH_CHANGED')) return false;
  const state = findSqlState(error);
  return state === '' || /^(22|23|P0)/.test(state);
};

/** Describes an error for the column `projection_parked.reason`. */
export const describeError = (error: unknown): string => {
  const root = isAppError(error) && error.cause instanceof Error ? error.cause : error;
  return (root instanceof Error ? `${root.name}: ${root.message}` : String(root)).slice(0, 2_000);
};

/** Delays before the retries of an event that failed, ms. Then its stream stays parked. */
export const RETRY_DELAYS_MS: readonly number[] = [200, 1_000, 5_000, 15_000];

/** Returns the delay before the retry that follows `tries` attempts; null after the last one. */
export const retryDelayAfter = (
  tries: number,
  delaysMs: readonly number[] = RETRY_DELAYS_MS,
): number | null => delaysMs[tries - 1] ?? null;

const PARK_SQL = `insert into projection_parked
    (projection, workspace, stream_id, position, reason, parked_at, tries, retry_at)
  values ($1, $2, $3, $4, $5, clock_timestamp(), 1, clock_timestamp() + $6 * interval '1 millisecond')`;

/** Parks the stream of an event after its first failed attempt, and schedules the retry. */
export const parkStream = async (
  client: pg.ClientBase,
  projection: string,
  { workspace, streamId, position }: RecordedEvent,
  error: unknown,
  delaysMs?: readonly number[],
): Promise<void> => {
  const delay = retryDelayAfter(1, delaysMs);
  await client.query(PARK_SQL, [projection, workspace, streamId, position, describeError(error), delay]);
};

/** Reason of streams whose event ended its process. Only an operator's replay applies them again. */
export const PROCESS_LOST = 'PROJECTION.PROCESS_LOST';

const PARK_LOST_SQL = `insert into projection_parked
    (projection, workspace, stream_id, position, reason, parked_at, tries, retry_at)
  values ($1, $2, $3, $4, $5, clock_timestamp(), $6, null)
  on conflict (projection, workspace, stream_id) do nothing`;

/** Parks the stream of an event that ended each process which applied it. */
export const parkLostStream = async (
  client: pg.ClientBase,
  projection: string,
  { workspace, streamId, position }: RecordedEvent,
  lost: number,
): Promise<void> => {
  const reason = `${PROCESS_LOST}: ${lost} processes ended while they applied the event`;
  await client.query(PARK_LOST_SQL, [projection, workspace, streamId, position, reason, lost]);
};

/** Reads the parked streams of a projection, each as `toStreamKey` writes it. */
export const readParkedStreams = async (
  client: pg.ClientBase,
  projection: string,
): Promise<ReadonlySet<string>> => {
  const text = 'select workspace, stream_id from projection_parked where projection = $1';
  const query = { name: 'antiphon_projection_parked', text, values: [projection] };
  const { rows } = await client.query<{ workspace: string; stream_id: string }>(query);
  return new Set(rows.map(({ workspace, stream_id: streamId }) => toStreamKey({ workspace, streamId })));
};

/** A stream that a projection has stopped applying. */
export interface ParkedStream {
  readonly projection: string;
  readonly workspace: string;
  readonly streamId: string;
  /** Position of the event that failed. */
  readonly position: number;
  /** Null once the event is archived, as is `type`. */
  readonly eventId: string | null;
  readonly type: string | null;
  readonly reason: string;
  readonly tries: number;
  readonly parkedAt: string;
  /** Time of the next retry; null when the stream waits for a replay by the operator. */
  readonly retryAt: string | null;
}

interface ParkedStreamRow {
  readonly projection: string;
  readonly workspace: string;
  readonly stream_id: string;
  readonly position: string;
  readonly event_id: string | null;
  readonly type: string | null;
  readonly reason: string;
  readonly tries: number;
  readonly parked_at: Date;
  readonly retry_at: Date | null;
}

const LIST_SQL = `select p.*, e.event_id, e.type from projection_parked p
  left join events e on e.position = p.position and e.stream_id = p.stream_id
  where ($1::text is null or p.projection = $1) and ($2::text is null or p.stream_id = $2)
  order by p.projection, p.position limit $3`;

const toParkedStream = (row: ParkedStreamRow): ParkedStream => ({
  projection: row.projection,
  workspace: row.workspace,
  streamId: row.stream_id,
  position: Number(row.position),
  eventId: row.event_id,
  type: row.type,
  reason: row.reason,
  tries: row.tries,
  parkedAt: row.parked_at.toISOString(),
  retryAt: row.retry_at?.toISOString() ?? null,
});

export interface ParkedFilter {
  readonly projection?: string | undefined;
  readonly streamId?: string | undefined;
  /** Default: all workspaces. */
  readonly workspace?: string;
  readonly limit?: number;
}

/** Lists parked streams by projection and position. */
export const listParked = async (
  pool: pg.Pool,
  { projection, streamId, workspace, limit }: ParkedFilter = {},
): Promise<readonly ParkedStream[]> => {
  const queries = workspace === undefined ? acrossWorkspaces(pool) : inWorkspace(pool, workspace);
  const { rows } = await queries
    .query<ParkedStreamRow>(LIST_SQL, [projection ?? null, streamId ?? null, limit ?? null])
    .catch((error: unknown) => {
      throw translateDatabaseError(error);
    });
  return rows.map(toParkedStream);
};
