import type pg from 'pg';
import type { ProjectionDefinition } from '../projection-definition.js';
import { readProgress } from '../projection-progress.js';
import { repairTable } from './compare-rows.js';
import { type Fold, foldInTransaction, type FoldOptions, foldUntilNear } from './fold-log.js';
import {
  liveTable,
  loadArchives,
  type LoadedArchives,
  requireWholeLog,
  withShadowTables,
} from './shadow-tables.js';

export interface RebuiltProjection {
  readonly name: string;
  /** Position of the checkpoint after the rebuild. */
  readonly position: number;
  /** Number of folded events. */
  readonly events: number;
  /** Number of rows that differed from the fold and were changed. */
  readonly changed: number;
  /** Number of streams that could not be folded to their end; they are parked. */
  readonly parked: number;
  /** Time during which the projection was locked, ms. It catches up afterwards. */
  readonly heldMs: number;
}

const LOCK_SQL = 'select from projection_checkpoints where name = $1 for update';
const MOVE_SQL = `insert into projection_checkpoints (name, position, epoch, updated_at)
  select $1, $2, epoch, clock_timestamp() from log_head where id = 1
  on conflict (name) do update set position = excluded.position, epoch = excluded.epoch, updated_at = excluded.updated_at`;

/**
 * Locks the projection until the transaction ends: its runner, or the appends that write it, wait.
 */
const lockProjection = async (
  client: pg.ClientBase,
  { name, tables, writtenWithAppend }: ProjectionDefinition,
): Promise<void> => {
  const locked = tables.map((table) => liveTable(table.name)).join(', ');
  if (writtenWithAppend) await client.query(`lock table ${locked} in exclusive mode`);
  else await client.query(LOCK_SQL, [name]);
};

/** Sets the checkpoint and replaces the parked streams. Returns the number of parked streams. */
const moveCheckpoint = async (client: pg.ClientBase, name: string, position: number): Promise<number> => {
  await client.query(MOVE_SQL, [name, position]);
  await client.query('delete from public.projection_parked where projection = $1', [name]);
  const { rowCount } = await client.query(
    'insert into public.projection_parked select * from pg_temp.projection_parked',
  );
  return rowCount ?? 0;
};

/**
 * Folds the rest and repairs the live rows. The folding role may not write them, so it is reset.
 */
const repairRows = async (
  client: pg.ClientBase,
  definition: ProjectionDefinition,
  from: Fold,
  archives: LoadedArchives,
): Promise<RebuiltProjection> => {
  const lockedAt = performance.now();
  const { name, tables, writtenWithAppend } = definition;
  await client.query('begin; reset role');
  await lockProjection(client, definition);
  const { position, epoch, head, logEpoch } = await readProgress(client, definition);
  const upTo = epoch === logEpoch ? Math.max(position, from.position) : head;
  await client.query('set local role antiphon_reader');
  const fold = await foldInTransaction(client, definition, from, upTo);
  await requireWholeLog(client, archives);
  await client.query('reset role');
  let changed = 0;
  for (const table of tables) changed += await repairTable(client, table);
  // A later read of the past folds the log again, by the current handlers.
  for (const stored of ['projection_snapshots', 'projection_snapshot_rows'])
    await client.query(`delete from public.${stored} where projection = $1`, [name]);
  const parked = writtenWithAppend ? 0 : await moveCheckpoint(client, name, fold.position);
  await client.query('commit');
  const heldMs = Math.round(performance.now() - lockedAt);
  return { name, position: fold.position, events: fold.events, changed, parked, heldMs };
};

/**
 * Rebuilds a projection from the log. First folds the log into temporary tables, in small batches
 * next to live traffic. Then one transaction locks the projection, folds the rest and changes the
 * rows that differ. Readers see either all old rows or all new ones. The pool's user must own the
 * database. Rejects with `LOG.ARCHIVED` when events are archived in files that it was not given, or
 * are archived during the fold.
 */
export const rebuildProjection = (
  pool: pg.Pool,
  definition: ProjectionDefinition,
  { archives: folder }: FoldOptions = {},
): Promise<RebuiltProjection> =>
  withShadowTables(pool, definition, async (client) => {
    const archives = await loadArchives(client, folder);
    const readTarget = async () => (await readProgress(client, definition)).head;
    const fold = await foldUntilNear(client, definition, readTarget);
    return repairRows(client, definition, fold, archives);
  });
