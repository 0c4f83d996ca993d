import pg from 'pg';
import { ALL_WORKSPACES } from '@antiphon/database';
import { PastSnapshots } from '../past-snapshots.js';
import type { ProjectionDefinition } from '../projection-definition.js';
import { readProgress } from '../projection-progress.js';
import { compareTable, type RowDifference, type TableComparison } from './compare-rows.js';
import { EMPTY_FOLD, type Fold, foldInTransaction, type FoldOptions, foldUntilNear } from './fold-log.js';
import { loadArchives, type LoadedArchives, requireWholeLog, withShadowTables } from './shadow-tables.js';

export interface ProjectionComparison {
  readonly name: string;
  /** Position of the log at which the two sides were compared. */
  readonly position: number;
  /** Number of folded events. */
  readonly events: number;
  /** Number of rows in the fold. */
  readonly rows: number;
  /** Number of rows that differ; `first` names some of them. */
  readonly differing: number;
  readonly first: readonly RowDifference[];
}

export interface CompareOptions extends FoldOptions {
  /** Snapshot id of `pg_export_snapshot()`: the comparison sees the data of that transaction. */
  readonly snapshot?: string;
}

/** Rows, differing rows and the first of them so far. */
class Differences {
  rows = 0;
  differing = 0;
  readonly first: RowDifference[] = [];

  add({ rows, differing, first }: TableComparison): void {
    this.rows += rows;
    this.differing += differing;
    this.first.push(...first);
  }
}

/**
 * Folds up to the position, and compares each snapshot that the fold passes: reads of the past
 * begin there.
 */
const foldAlongSnapshots = async (
  client: pg.ClientBase,
  definition: ProjectionDefinition,
  from: Fold,
  position: number,
  differences: Differences,
): Promise<Fold> => {
  let fold = from;
  const snapshots = new PastSnapshots(definition);
  for (const stored of await snapshots.list(client)) {
    if (stored.position < from.position || stored.position > position) continue;
    fold = await foldInTransaction(client, definition, fold, stored.position);
    const scope = stored.scope === ALL_WORKSPACES ? 'true' : `workspace = ${pg.escapeLiteral(stored.scope)}`;
    for (const { table, relation } of snapshots.relations(stored)) {
      const condition = `${scope} and (${table.snapshotRows ?? 'true'})`;
      const compared = await compareTable(client, table, { relation, condition });
      const at = `${table.name}, snapshot at ${stored.position}`;
      // Rows that are equal count once, with the live ones.
      differences.add({ ...compared, rows: 0, first: compared.first.map((row) => ({ ...row, table: at })) });
    }
  }
  return foldInTransaction(client, definition, fold, position);
};

const compareOnSnapshot = async (
  client: pg.ClientBase,
  definition: ProjectionDefinition,
  from: Fold,
  archives: LoadedArchives,
): Promise<ProjectionComparison> => {
  const { position } = await readProgress(client, definition);
  const differences = new Differences();
  const { events } = await foldAlongSnapshots(client, definition, from, position, differences);
  await requireWholeLog(client, archives);
  for (const { name } of definition.tables)
    await client.query(`analyze pg_temp.${pg.escapeIdentifier(name)}`);
  for (const table of definition.tables) differences.add(await compareTable(client, table));
  const { rows, differing, first } = differences;
  return { name: definition.name, position, events, rows, differing, first };
};

/**
 * Folds the log again, in small batches next to live traffic, and compares every row of the
 * projection with the fold. Rows, checkpoint and log come from one snapshot, without a lock. Writes
 * only temporary tables. Rejects with an AppError:
 * - `DATABASE.FORBIDDEN`: the handler writes outside its tables.
 * - `LOG.ARCHIVED`: events are archived in files that it was not given, or during the fold.
 * - `LOG.ARCHIVE_DAMAGED`: an archive file was changed.
 * - `LOG.UNAVAILABLE` or `DATABASE.…`: the database cannot be read.
 */
export const compareProjection = (
  pool: pg.Pool,
  definition: ProjectionDefinition,
  { snapshot, archives: folder }: CompareOptions = {},
): Promise<ProjectionComparison> =>
  withShadowTables(pool, definition, async (client) => {
    const early = snapshot === undefined ? await loadArchives(client, folder) : null;
    const readTarget = async () => (await readProgress(client, definition)).position;
    const fold = snapshot === undefined ? await foldUntilNear(client, definition, readTarget) : EMPTY_FOLD;
    await client.query('begin isolation level repeatable read');
    if (snapshot !== undefined) await client.query(`set transaction snapshot ${pg.escapeLiteral(snapshot)}`);
    // An imported snapshot does not see the archives if they were loaded before it.
    const archives = early ?? (await loadArchives(client, folder));
    const compared = await compareOnSnapshot(client, definition, fold, archives);
    await client.query('rollback');
    return compared;
  });

/** Compares projections one after another, each at its own position of the log. */
export const compareProjections = async (
  pool: pg.Pool,
  definitions: readonly ProjectionDefinition[],
  options: CompareOptions = {},
): Promise<readonly ProjectionComparison[]> => {
  const comparisons: ProjectionComparison[] = [];
  for (const definition of definitions) comparisons.push(await compareProjection(pool, definition, options));
  return comparisons;
};
