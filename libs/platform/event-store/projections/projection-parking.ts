import type pg from 'pg';
import { isAppError } from '@antiphon/kernel';
import type { RecordedEvent } from '../event-store.port.js';

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

export const reasonOf = (error: unknown): string => {
  const root = isAppError(error) && error.cause instanceof Error ? error.cause : error;
  return (root instanceof Error ? `${root.name}: ${root.message}` : String(root)).slice(0, 2_000);
};

/** How long to wait before each further try of an event that could not be handled, in ms; then its stream is parked. */
export const RETRY_DELAYS_MS: readonly number[] = [200, 1_000, 5_000, 15_000];

/** For the try after `tries` of them; null when that was the last. */
export const delayAfter = (tries: number, delaysMs: readonly number[] = RETRY_DELAYS_MS): number | null =>
  delaysMs[tries - 1] ?? null;

const PARK_SQL = `insert into projection_parked
    (projection, workspace, stream_id, position, reason, parked_at, tries, retry_at)
  values ($1, $2, $3, $4, $5, clock_timestamp(), 1, clock_timestamp() + $6 * interval '1 millisecond')`;

/** Stops an event's stream at this event, which was tried once. */
export const park = async (
  client: pg.ClientBase,
  name: string,
  event: RecordedEvent,
  error: unknown,
  delaysMs?: readonly number[],
): Promise<void> => {
  const { workspace, streamId, position } = event;
  await client.query(PARK_SQL, [
    name,
    workspace,
    streamId,
    position,
    reasonOf(error),
    delayAfter(1, delaysMs),
  ]);
};

/** The streams that a projection has stopped at, each as `streamKeyOf` writes it. */
export const parkedStreams = async (client: pg.ClientBase, name: string): Promise<ReadonlySet<string>> => {
  const text = 'select workspace, stream_id from projection_parked where projection = $1';
  const query = { name: 'antiphon_projection_parked', text, values: [name] };
  const { rows } = await client.query<{ workspace: string; stream_id: string }>(query);
  return new Set(rows.map(({ workspace, stream_id: streamId }) => streamKeyOf({ workspace, streamId })));
};
