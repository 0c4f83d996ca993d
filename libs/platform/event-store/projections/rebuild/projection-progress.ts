import type pg from 'pg';
import type { ProjectionDefinition } from './projection-definition.js';

/** Where a projection stands. */
export interface ProjectionProgress {
  /** The last position that its rows contain; 0 before it has begun. */
  readonly position: number;
  /** The log's epoch at its last move; null without a checkpoint. */
  readonly epoch: number | null;
  /** Where the log ends, and its epoch. */
  readonly head: number;
  readonly logEpoch: number;
  /** Streams that it has stopped at. */
  readonly parked: number;
  /** When the checkpoint moved last, ISO 8601; null without one. */
  readonly movedAt: string | null;
}

interface ProgressRow {
  readonly position: string | null;
  readonly epoch: string | null;
  readonly head: string;
  readonly log_epoch: string;
  readonly parked: string;
  readonly updated_at: Date | null;
}

const PROGRESS_SQL = `select c.position, c.epoch, c.updated_at, h.epoch as log_epoch,
    greatest(h.base_position, coalesce((select max(position) from events), 0)) as head,
    (select count(*) from public.projection_parked where projection = $1) as parked
  from log_head h left join projection_checkpoints c on c.name = $1 where h.id = 1`;

/** Reads it in one statement. `name` and `writtenWithAppend` are all that counts. */
export const readProgress = async (
  client: pg.Pool | pg.ClientBase,
  { name, writtenWithAppend }: Pick<ProjectionDefinition, 'name' | 'writtenWithAppend'>,
): Promise<ProjectionProgress> => {
  const { rows } = await client.query<ProgressRow>(PROGRESS_SQL, [name]);
  const row = rows[0];
  if (row === undefined) throw new Error('the log has no head: the database is not migrated');
  const head = Number(row.head);
  return {
    position: writtenWithAppend ? head : Number(row.position ?? 0),
    epoch: row.epoch === null ? null : Number(row.epoch),
    head,
    logEpoch: Number(row.log_epoch),
    parked: Number(row.parked),
    movedAt: row.updated_at?.toISOString() ?? null,
  };
};
