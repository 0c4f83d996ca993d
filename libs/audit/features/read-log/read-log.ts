import type pg from 'pg';
import { borrowClient, ALL_WORKSPACES, fetchPages, translateDatabaseError } from '@antiphon/database';
import type { EventPlace } from '@antiphon/audit-domain';
import type { EventMetadata, RecordedEvent } from '@antiphon/event-store';
import type { JsonObject } from '@antiphon/kernel';

/** Columns of `events` as `pg` returns them; bigints as text. */
export interface EventRow {
  readonly position: string;
  readonly workspace: string;
  readonly category: string;
  readonly stream_id: string;
  readonly stream_version: string;
  readonly event_id: string;
  readonly type: string;
  readonly schema_version: number;
  readonly data: JsonObject;
  readonly metadata: EventMetadata;
  readonly recorded_at: Date;
  readonly hash: Buffer;
}

export const EVENT_COLUMNS = `position, workspace, category, stream_id, stream_version, event_id, type, schema_version, data,
  metadata, recorded_at, hash`;

export const toEvent = (row: EventRow): RecordedEvent => ({
  position: Number(row.position),
  workspace: row.workspace,
  category: row.category,
  streamId: row.stream_id,
  streamVersion: Number(row.stream_version),
  eventId: row.event_id,
  type: row.type,
  schemaVersion: row.schema_version,
  data: row.data,
  metadata: row.metadata,
  recordedAt: row.recorded_at.toISOString(),
  hash: row.hash.toString('hex'),
});

export const toPlace = ({
  position,
  workspace,
  streamId,
  streamVersion,
  eventId,
}: EventPlace): EventPlace => ({ position, workspace, streamId, streamVersion, eventId });

/** Columns of the place of an event. */
export interface PlaceRow {
  readonly position: string;
  readonly event_id: string;
  readonly workspace: string;
  readonly stream_id: string;
  readonly stream_version: string;
}

export const PLACE_COLUMNS = 'position, workspace, stream_id, stream_version, event_id';

export const rowToPlace = (row: PlaceRow): EventPlace => ({
  position: Number(row.position),
  workspace: row.workspace,
  streamId: row.stream_id,
  streamVersion: Number(row.stream_version),
  eventId: row.event_id,
});

/**
 * Reads the rows of a query through a server-side cursor, in pages bounded in number and in the
 * `bytes` of a row `r` (SQL). Requires a transaction, in which `name` is unique.
 */
export async function* readRows<Row extends pg.QueryResultRow>(
  client: pg.ClientBase,
  name: string,
  sql: string,
  bytes?: string,
): AsyncGenerator<Row, void, undefined> {
  const query = { name, rows: sql, ...(bytes === undefined ? {} : { bytes }) };
  for await (const page of fetchPages<Row>(client, query)) yield* page;
}

/** Beginning and end of the log on a snapshot. */
export interface LogBounds {
  readonly epoch: number;
  /** Position before the first event. */
  readonly base: number;
  /** Position of the newest event, or `base`. */
  readonly head: number;
}

const BOUNDS_SQL = `select h.epoch, h.base_position as base,
  coalesce((select e.position from events e order by e.position desc limit 1), h.base_position) as head
  from log_head h where h.id = 1`;

export const readLogBounds = async (client: pg.ClientBase): Promise<LogBounds> => {
  const { rows } = await client.query<Record<keyof LogBounds, string>>(BOUNDS_SQL);
  const { epoch = 1, base = 0, head = 0 } = rows[0] ?? {};
  return { epoch: Number(epoch), base: Number(base), head: Number(head) };
};

/** Timeout for one statement over a large log; that of the pool suits requests. */
const STATEMENT_TIMEOUT = '10min';

/**
 * Runs `work` on one snapshot of the whole database. Later writes of the services are not visible,
 * so the log and the data derived from it are compared at the same point. `prepare` and `end` use
 * the same session before and after it.
 */
export const runOnSnapshot = async <P, T>(
  pool: pg.Pool,
  prepare: (client: pg.PoolClient) => Promise<P>,
  work: (client: pg.PoolClient, prepared: P) => Promise<T>,
  end: (client: pg.PoolClient, prepared: P) => Promise<void>,
): Promise<T> => {
  const { client, release } = await borrowClient(pool).catch((error: unknown) => {
    throw translateDatabaseError(error);
  });
  let broken: Error | undefined;
  try {
    await client.query(
      `set statement_timeout = '${STATEMENT_TIMEOUT}'; set antiphon.workspace = '${ALL_WORKSPACES}'`,
    );
    const prepared = await prepare(client);
    await client.query('begin isolation level repeatable read, read only');
    const result = await work(client, prepared);
    await client.query('commit');
    await end(client, prepared);
    await client.query('reset statement_timeout; reset antiphon.workspace');
    return result;
  } catch (error) {
    // Closes the session with its temporary tables.
    broken = error as Error;
    throw translateDatabaseError(error);
  } finally {
    release(broken);
  }
};
