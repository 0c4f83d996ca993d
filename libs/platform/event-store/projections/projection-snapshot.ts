import { translateDatabaseError } from '@antiphon/database';
import { PAGE_BYTES, type RecordedEvent } from '../event-store.port.js';
import { archivedBefore, isPageFull, type PagedRow, pageSql, toEvent } from '../read/event-row.js';
import { epochChanged } from './projection-checkpoint.js';
import type { ProjectionSource } from './projection-definition.js';

/**
 * A range of the log without events for a projection. The process remembers it, so that a stored
 * checkpoint at `from` counts as `to` for the next read.
 */
export interface SkippedRange {
  readonly from: number;
  readonly to: number;
}

/** Snapshot of a projection and of the log after its checkpoint, read without a lock. */
export interface ProjectionSnapshot {
  /** Stored checkpoint. */
  readonly position: number;
  /** Epoch of the log. */
  readonly epoch: number;
  /** All events of the projection's categories after the checkpoint and up to `upTo`, in order. */
  readonly events: readonly RecordedEvent[];
  readonly upTo: number;
  /** Position of the newest event in the log. */
  readonly head: number;
  readonly hasParkedStreams: boolean;
}

/** Maximum number of positions per read, so that a rare category does not scan the whole log. */
const MAX_RANGE = 20_000;

/**
 * Reads everything in one statement and so on one snapshot. Positions have no gaps and are
 * committed in their order, so the snapshot contains every event up to the head.
 */
const SNAPSHOT_SQL = `with at as materialized (
    select coalesce(c.position, 0) as checkpoint, coalesce(c.epoch, h.epoch) as epoch, h.epoch as log_epoch,
      h.base_position as base, antiphon_head_position() as head,
      exists (select from projection_parked where projection = $1) as parked,
      case when c.position = $2 then $3::bigint else coalesce(c.position, 0) end as after
    from log_head h left join projection_checkpoints c on c.name = $1 where h.id = 1)
  select at.*, e.* from at left join lateral (${pageSql(
    `where position > at.after and position <= at.after + ${MAX_RANGE} and category = any ($4)
      order by position limit $5`,
    'position',
    String(PAGE_BYTES),
  )}) e on true
  order by e.position`;

interface SnapshotRow extends Omit<PagedRow, 'position'> {
  readonly checkpoint: string;
  readonly epoch: string;
  readonly log_epoch: string;
  readonly base: string;
  readonly head: string;
  readonly parked: boolean;
  readonly after: string;
  /** Null in the only row of a snapshot without events. */
  readonly position: string | null;
}

const toSnapshot = (name: string, limit: number, rows: readonly SnapshotRow[]): ProjectionSnapshot => {
  const [first] = rows;
  if (first === undefined) throw new Error('the log has no head: the database is not migrated');
  const [position, head, after] = [Number(first.checkpoint), Number(first.head), Number(first.after)];
  if (first.epoch !== first.log_epoch && position > 0)
    throw epochChanged(name, Number(first.epoch), Number(first.log_epoch));
  if (after < Number(first.base)) throw archivedBefore(Number(first.base));
  const page = rows.flatMap((row) => (row.position === null ? [] : [row as PagedRow]));
  const events = page.map(toEvent);
  const end = Math.max(after, Math.min(head, after + MAX_RANGE));
  const upTo = isPageFull(page, { limit }) ? (events.at(-1)?.position ?? end) : end;
  return { position, epoch: Number(first.log_epoch), events, upTo, head, hasParkedStreams: first.parked };
};

/**
 * Reads the next events of a projection, from its checkpoint or from the end of the skipped range.
 * Throws `LOG.EPOCH_CHANGED` (bug) or `LOG.ARCHIVED`.
 */
export const readSnapshot = async (
  { pool, name, categories, batchSize }: ProjectionSource,
  skipped: SkippedRange,
): Promise<ProjectionSnapshot> => {
  const values = [name, skipped.from, skipped.to, categories, batchSize];
  const query = { name: 'antiphon_projection_snapshot', text: SNAPSHOT_SQL, values };
  const { rows } = await pool.query<SnapshotRow>(query).catch((error: unknown) => {
    throw translateDatabaseError(error);
  });
  return toSnapshot(name, batchSize, rows);
};
