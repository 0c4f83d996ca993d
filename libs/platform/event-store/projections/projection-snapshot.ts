import { translateDatabaseError } from '@antiphon/database';
import type { RecordedEvent } from '../event-store.port.js';
import { archivedBefore, COLUMNS, type EventRow, toEvent } from '../read/log-reader.js';
import { epochChanged } from './projection-checkpoint.js';
import type { ProjectionSource } from './projection-source.js';

/** A stretch of the log without any event for a projection: `to` speaks for a checkpoint that is at `from`. */
export interface Passed {
  readonly from: number;
  readonly to: number;
}

/** What a projection has before it, seen at one moment and without a lock. */
export interface Look {
  /** The checkpoint. */
  readonly position: number;
  readonly epoch: number;
  /** Every event of the projection's categories behind the checkpoint and up to `upTo`, in order. */
  readonly events: readonly RecordedEvent[];
  readonly upTo: number;
  /** Where the log ends. */
  readonly head: number;
  /** Whether any stream is parked. */
  readonly parked: boolean;
}

/** Positions that one look may pass over, so that a rare category does not scan the whole log at once. */
const SPAN = 20_000;

/** One snapshot: positions have no holes and are committed in their order, so all up to the head is in it. */
const LOOK_SQL = `with at as materialized (
    select coalesce(c.position, 0) as checkpoint, coalesce(c.epoch, h.epoch) as epoch, h.epoch as log_epoch,
      h.base_position as base, greatest(h.base_position, coalesce((select max(position) from events), 0)) as head,
      exists (select from projection_parked where projection = $1) as parked,
      case when c.position = $2 then $3::bigint else coalesce(c.position, 0) end as after
    from log_head h left join projection_checkpoints c on c.name = $1 where h.id = 1)
  select at.*, e.* from at left join lateral (
    select ${COLUMNS} from events
    where position > at.after and position <= at.after + ${SPAN} and category = any ($4)
    order by position limit $5) e on true
  order by e.position`;

interface LookRow extends Omit<EventRow, 'position'> {
  readonly checkpoint: string;
  readonly epoch: string;
  readonly log_epoch: string;
  readonly base: string;
  readonly head: string;
  readonly parked: boolean;
  readonly after: string;
  /** Null where there is no event. */
  readonly position: string | null;
}

const toLook = (name: string, limit: number, rows: readonly LookRow[]): Look => {
  const [first] = rows;
  if (first === undefined) throw new Error('the log has no head: the database is not migrated');
  const [position, head, after] = [Number(first.checkpoint), Number(first.head), Number(first.after)];
  if (first.epoch !== first.log_epoch && position > 0)
    throw epochChanged(name, Number(first.epoch), Number(first.log_epoch));
  if (after < Number(first.base)) throw archivedBefore(Number(first.base));
  const events = rows.flatMap((row) => (row.position === null ? [] : [toEvent(row as EventRow)]));
  const end = Math.max(after, Math.min(head, after + SPAN));
  const upTo = events.length < limit ? end : (events.at(-1)?.position ?? end);
  return { position, epoch: Number(first.log_epoch), events, upTo, head, parked: first.parked };
};

/** Looks on from the checkpoint, or from where the last look had passed to. Throws `LOG.EPOCH_CHANGED` (bug), `LOG.ARCHIVED`. */
export const look = async (source: ProjectionSource, passed: Passed): Promise<Look> => {
  const { pool, name, categories, batchSize } = source;
  const values = [name, passed.from, passed.to, categories, batchSize];
  const query = { name: 'antiphon_projection_look', text: LOOK_SQL, values };
  const { rows } = await pool.query<LookRow>(query).catch((error: unknown) => {
    throw translateDatabaseError(error);
  });
  return toLook(name, batchSize, rows);
};
