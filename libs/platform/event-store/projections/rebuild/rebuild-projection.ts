import type pg from 'pg';
import { foldUntilNear } from './compare-projection.js';
import type { FoldOptions } from './compare-projection.js';
import { mendTable } from './compare-rows.js';
import { foldWithin } from './fold-log.js';
import type { Fold } from './fold-log.js';
import type { ProjectionDefinition } from './projection-definition.js';
import { readProgress } from './projection-progress.js';
import { liveTable, withShadowTables } from './shadow-tables.js';
import { readArchivesAlong, requireWholeLog } from './whole-log.js';
import type { ReadAlong } from './whole-log.js';

export interface RebuiltProjection {
  readonly name: string;
  /** Its position from now on. */
  readonly position: number;
  /** Events that were folded. */
  readonly events: number;
  /** Rows that were not what the log makes, and are now. */
  readonly changed: number;
  /** Streams that could not be folded to their end; they are parked. */
  readonly parked: number;
  /** How long the projection stood still, in ms: what it missed meanwhile comes after. */
  readonly heldMs: number;
}

const HOLD_SQL = 'select from projection_checkpoints where name = $1 for update';
const MOVE_SQL = `insert into projection_checkpoints (name, position, epoch, updated_at)
  select $1, $2, epoch, clock_timestamp() from log_head where id = 1
  on conflict (name) do update set position = excluded.position, epoch = excluded.epoch, updated_at = excluded.updated_at`;

/** Nobody else moves the projection, or appends what it is written with, until the transaction ends. */
const hold = async (
  client: pg.ClientBase,
  { name, tables, writtenWithAppend }: ProjectionDefinition,
): Promise<void> => {
  const locked = tables.map((table) => liveTable(table.name)).join(', ');
  if (writtenWithAppend) await client.query(`lock table ${locked} in exclusive mode`);
  else await client.query(HOLD_SQL, [name]);
};

const movePast = async (client: pg.ClientBase, name: string, position: number): Promise<number> => {
  await client.query(MOVE_SQL, [name, position]);
  await client.query('delete from public.projection_parked where projection = $1', [name]);
  const { rowCount } = await client.query(
    'insert into public.projection_parked select * from pg_temp.projection_parked',
  );
  return rowCount ?? 0;
};

/** As the pool's own user: the folding role may not write what readers see. */
const swap = async (
  client: pg.ClientBase,
  definition: ProjectionDefinition,
  from: Fold,
  along: ReadAlong,
): Promise<RebuiltProjection> => {
  const heldFrom = performance.now();
  const { name, tables, writtenWithAppend } = definition;
  await client.query('begin; reset role');
  await hold(client, definition);
  const { position: live, epoch, head, logEpoch } = await readProgress(client, definition);
  await client.query('set local role antiphon_reader');
  const fold = await foldWithin(
    client,
    definition,
    from,
    epoch === logEpoch ? Math.max(live, from.position) : head,
  );
  await requireWholeLog(client, along);
  await client.query('reset role');
  let changed = 0;
  for (const table of tables) changed += await mendTable(client, table);
  const parked = writtenWithAppend ? 0 : await movePast(client, name, fold.position);
  await client.query('commit');
  const heldMs = Math.round(performance.now() - heldFrom);
  return { name, position: fold.position, events: fold.events, changed, parked, heldMs };
};

/**
 * Makes a projection anew from the log. It is folded into temporary tables in small batches beside live traffic; then,
 * in one transaction that keeps the projection still, the rest is folded and the rows that differ are changed: readers
 * see the old rows until it commits, and the new ones after, never some of each. Needs the database's owner. Rejects with `LOG.ARCHIVED`
 * when a part of the log has left to files that it was not given, or leaves meanwhile.
 */
export const rebuildProjection = (
  pool: pg.Pool,
  definition: ProjectionDefinition,
  { archives }: FoldOptions = {},
): Promise<RebuiltProjection> =>
  withShadowTables(pool, definition, async (client) => {
    const along = await readArchivesAlong(client, archives);
    const fold = await foldUntilNear(
      client,
      definition,
      async () => (await readProgress(client, definition)).head,
    );
    return swap(client, definition, fold, along);
  });
