import type pg from 'pg';
import { translateDatabaseError } from '@antiphon/database';
import type { ProjectionDefinition } from './projection-definition.js';
import { readProgress } from './projection-progress.js';

export interface ListedProjection {
  readonly name: string;
  /** `unknown`: it has a checkpoint, and nothing of this version projects it. */
  readonly service: string;
  readonly position: number;
  /** Events of the log behind its position. */
  readonly lag: number;
  /** Streams that it has stopped at. */
  readonly parked: number;
  readonly movedAt: string | null;
  /** The log was restored after its last move: it waits for a rebuild. */
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

/** Every projection of these definitions, and every other one that the database has a checkpoint of. */
export const listProjections = async (
  pool: pg.Pool,
  definitions: readonly ProjectionDefinition[],
): Promise<readonly ListedProjection[]> => {
  try {
    const names = definitions.map(({ name }) => name);
    const { rows } = await pool.query<{ name: string }>(
      'select name from projection_checkpoints where name <> all ($1) order by name',
      [names],
    );
    const all = [...definitions, ...rows.map(({ name }) => ({ name, service: 'unknown' }))];
    const listed: ListedProjection[] = [];
    for (const definition of all) listed.push(await listOne(pool, definition));
    return listed;
  } catch (error) {
    throw translateDatabaseError(error);
  }
};
