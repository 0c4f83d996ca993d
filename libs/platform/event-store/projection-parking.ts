import type pg from 'pg';
import { inTransaction } from '@antiphon/database';
import { isAppError } from '@antiphon/kernel';
import type { RecordedEvent } from './event-store.port.js';
import { createLogReader } from './log-reader.js';
import { holdCheckpoint } from './projection-checkpoint.js';
import type { ProjectionSource } from './projection-source.js';

export const streamKeyOf = ({ workspace, streamId }: Pick<RecordedEvent, 'workspace' | 'streamId'>): string =>
  `${workspace} ${streamId}`;

const sqlStateOf = (error: unknown): string => {
  for (let at = error; at instanceof Error; at = at.cause) {
    const { code } = at as { code?: unknown };
    if (typeof code === 'string' && /^(?=.*\d)[0-9A-Z]{5}$/.test(code)) return code;
  }
  return '';
};

/**
 * True when an event is to blame: not the database's absence, and not a missing table or privilege (SQLSTATE
 * class 42), which every event would meet and which a park would only spread.
 */
export const isPoison = (error: unknown): boolean => {
  if (isAppError(error) && (error.kind === 'transient' || error.code === 'LOG.EPOCH_CHANGED')) return false;
  const state = sqlStateOf(error);
  return state === '' || /^(22|23|P0)/.test(state);
};

const reasonOf = (error: unknown): string => {
  const root = isAppError(error) && error.cause instanceof Error ? error.cause : error;
  return (root instanceof Error ? `${root.name}: ${root.message}` : String(root)).slice(0, 2_000);
};

/** Stops an event's stream at this event. */
export const park = async (
  client: pg.ClientBase,
  name: string,
  event: RecordedEvent,
  error: unknown,
): Promise<void> => {
  await client.query(
    `insert into projection_parked (projection, workspace, stream_id, position, reason, parked_at)
     values ($1, $2, $3, $4, $5, clock_timestamp())`,
    [name, event.workspace, event.streamId, event.position, reasonOf(error)],
  );
};

/** The streams that a projection has stopped at, each as `streamKeyOf` writes it. */
export const parkedStreams = async (client: pg.ClientBase, name: string): Promise<ReadonlySet<string>> => {
  const text = 'select workspace, stream_id from projection_parked where projection = $1';
  const query = { name: 'antiphon_projection_parked', text, values: [name] };
  const { rows } = await client.query<{ workspace: string; stream_id: string }>(query);
  return new Set(rows.map(({ workspace, stream_id: streamId }) => streamKeyOf({ workspace, streamId })));
};

interface ParkedRow {
  readonly workspace: string;
  readonly stream_id: string;
  readonly position: string;
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

const replayOne = ({ pool, name, handle }: ProjectionSource, row: ParkedRow): Promise<boolean> =>
  inTransaction(pool, async (client) => {
    const checkpoint = await holdCheckpoint(client, name);
    if (checkpoint === null) return false;
    const { rowCount } = await client.query(
      'delete from projection_parked where projection = $1 and workspace = $2 and stream_id = $3 and position = $4',
      [name, row.workspace, row.stream_id, row.position],
    );
    if (rowCount === 0) return false;
    await handle(client, await missedEvents(client, row, checkpoint));
    return true;
  });

/** What became of the streams that were tried again. */
export interface ReplayResult {
  readonly replayed: number;
  readonly stillParked: readonly {
    readonly workspace: string;
    readonly streamId: string;
    readonly error: unknown;
  }[];
}

/** Tries every parked stream again, each in a transaction of its own: after a fix, what it missed is applied. */
export const replayParked = async (source: ProjectionSource): Promise<ReplayResult> => {
  const { rows } = await source.pool.query<ParkedRow>(
    'select workspace, stream_id, position from projection_parked where projection = $1 order by position',
    [source.name],
  );
  const stillParked: { workspace: string; streamId: string; error: unknown }[] = [];
  let replayed = 0;
  for (const row of rows) {
    try {
      if (await replayOne(source, row)) replayed++;
    } catch (error) {
      if (!isPoison(error)) throw error;
      stillParked.push({ workspace: row.workspace, streamId: row.stream_id, error });
    }
  }
  return { replayed, stillParked };
};
