import type pg from 'pg';
import { acrossWorkspaces, translateDatabaseError } from '@antiphon/database';
import { observeGauges } from '@antiphon/observability';
import { createLogReader } from '../read/log-reader.js';
import type { ProjectionDefinition } from './projection-definition.js';

/** Progress of a projection. */
export interface ProjectionProgress {
  /** Last position that its rows contain; 0 before its first batch. */
  readonly position: number;
  /** Epoch of the log at its last move; null without a checkpoint. */
  readonly epoch: number | null;
  /** Head of the log, and its epoch. */
  readonly head: number;
  readonly logEpoch: number;
  /** Number of parked streams. */
  readonly parked: number;
  /** Time of the checkpoint's last move, ISO 8601; null without one. */
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
    public.antiphon_head_position() as head,
    (select count(*) from public.projection_parked where projection = $1) as parked
  from log_head h left join projection_checkpoints c on c.name = $1 where h.id = 1`;

/** Reads the progress of one projection in one statement. */
export const readProgress = async (
  client: pg.Pool | pg.ClientBase,
  { name, writtenWithAppend }: Pick<ProjectionDefinition, 'name' | 'writtenWithAppend'>,
): Promise<ProjectionProgress> => {
  const { rows } = await acrossWorkspaces(client).query<ProgressRow>(PROGRESS_SQL, [name]);
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

export interface ListedProjection {
  readonly name: string;
  /** `unknown`: a checkpoint exists, but no service of this version runs the projection. */
  readonly service: string;
  readonly position: number;
  /** Number of events in the log after its position. */
  readonly lag: number;
  /** Number of parked streams. */
  readonly parked: number;
  readonly movedAt: string | null;
  /** True if the log was restored after the last move: the projection must be rebuilt. */
  readonly stale: boolean;
}

const listOne = async (
  pool: pg.Pool,
  definition: Pick<ProjectionDefinition, 'name' | 'service' | 'writtenWithAppend'>,
): Promise<ListedProjection> => {
  const { position, epoch, head, logEpoch, parked, movedAt } = await readProgress(pool, definition);
  const { name, service } = definition;
  const stale = epoch !== null && epoch !== logEpoch && position > 0;
  return { name, service, position, lag: Math.max(0, head - position), parked, movedAt, stale };
};

const OTHERS_SQL = 'select name from projection_checkpoints where name <> all ($1) order by name';

/** Lists the defined projections, and every other one that has a checkpoint in the database. */
export const listProjections = async (
  pool: pg.Pool,
  definitions: readonly ProjectionDefinition[],
): Promise<readonly ListedProjection[]> => {
  try {
    const names = definitions.map(({ name }) => name);
    const { rows } = await pool.query<{ name: string }>(OTHERS_SQL, [names]);
    const all = [...definitions, ...rows.map(({ name }) => ({ name, service: 'unknown' }))];
    const listed: ListedProjection[] = [];
    for (const definition of all) listed.push(await listOne(pool, definition));
    return listed;
  } catch (error) {
    throw translateDatabaseError(error);
  }
};

const PARKED_COUNT_SQL = 'select count(*)::integer as parked from projection_parked where projection = $1';

/**
 * Reports how far a projection is behind the log and how many streams are parked, at each scrape of
 * the metrics. Returns a function that stops the reports.
 */
export const observeProjectionLag = (
  pool: pg.Pool,
  projection: string,
  readPosition: () => number,
): (() => void) =>
  observeGauges(
    {
      antiphon_projection_lag_events: 'Events of the log that a projection has not seen yet',
      antiphon_projection_parked_streams: 'Event streams that a projection has stopped at',
    },
    async (report) => {
      const position = readPosition();
      const lag = Math.max(0, (await createLogReader(pool).headPosition()) - position);
      report('antiphon_projection_lag_events', lag, { projection });
      const { rows } = await acrossWorkspaces(pool).query<{ parked: number }>(PARKED_COUNT_SQL, [projection]);
      report('antiphon_projection_parked_streams', rows[0]?.parked ?? 0, { projection });
    },
  );
