import pg from 'pg';
import { compareTable } from './compare-rows.js';
import type { RowDifference } from './compare-rows.js';
import { foldInBatches, foldWithin } from './fold-log.js';
import type { Fold } from './fold-log.js';
import type { ProjectionDefinition } from './projection-definition.js';
import { readProgress } from './projection-progress.js';
import { withShadowTables } from './shadow-tables.js';
import { readArchivesAlong, requireWholeLog } from './whole-log.js';
import type { ReadAlong } from './whole-log.js';

export interface ProjectionComparison {
  readonly name: string;
  /** The position of the log at which both sides were held against each other. */
  readonly position: number;
  /** Events that were folded. */
  readonly events: number;
  /** Rows that the log makes. */
  readonly rows: number;
  /** Rows that differ; `first` names some of them. */
  readonly differing: number;
  readonly first: readonly RowDifference[];
}

export interface FoldOptions {
  /** Folder of the files of archived events, which are folded along; without it nothing may have left the log. */
  readonly archives?: string | undefined;
}

export interface CompareOptions extends FoldOptions {
  /** Of `pg_export_snapshot()`: what is compared is what its transaction sees. */
  readonly snapshot?: string;
}

/** So few events are left to the last step, which has a snapshot open meanwhile. */
export const NEAR = 1_000;
/** A log that grows faster than it can be folded is left to the last step too. */
const MAX_ROUNDS = 10;

/** Folds until the target, which moves on under live traffic, is near. */
export const foldUntilNear = async (
  client: pg.ClientBase,
  definition: ProjectionDefinition,
  target: () => Promise<number>,
): Promise<Fold> => {
  let fold: Fold = { position: 0, events: 0 };
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const upTo = await target();
    if (upTo - fold.position <= NEAR) break;
    fold = await foldInBatches(client, definition, fold, upTo);
  }
  return fold;
};

const compareHere = async (
  client: pg.ClientBase,
  definition: ProjectionDefinition,
  from: Fold,
  along: ReadAlong,
): Promise<ProjectionComparison> => {
  const { position } = await readProgress(client, definition);
  const { events } = await foldWithin(client, definition, from, position);
  await requireWholeLog(client, along);
  for (const { name } of definition.tables)
    await client.query(`analyze pg_temp.${pg.escapeIdentifier(name)}`);
  let [rows, differing] = [0, 0];
  const first: RowDifference[] = [];
  for (const table of definition.tables) {
    const compared = await compareTable(client, table);
    rows += compared.rows;
    differing += compared.differing;
    first.push(...compared.first);
  }
  return { name: definition.name, position, events, rows, differing, first };
};

/**
 * Folds the log anew, in small batches beside live traffic, and holds every row of the projection against it, on one
 * snapshot: rows, checkpoint and log of the same moment, without a lock. Writes nothing but temporary tables.
 * Rejects with an AppError when the database cannot be read, when the handler writes elsewhere (`DATABASE.FORBIDDEN`), when
 * events have left to files that it was not given, or leave meanwhile (`LOG.ARCHIVED`), and when a file is not the one that
 * was written (`LOG.ARCHIVE_DAMAGED`).
 */
export const compareProjection = (
  pool: pg.Pool,
  definition: ProjectionDefinition,
  { snapshot, archives }: CompareOptions = {},
): Promise<ProjectionComparison> =>
  withShadowTables(pool, definition, async (client) => {
    const early = snapshot === undefined ? await readArchivesAlong(client, archives) : null;
    const target = async () => (await readProgress(client, definition)).position;
    const fold =
      snapshot === undefined ? await foldUntilNear(client, definition, target) : { position: 0, events: 0 };
    await client.query('begin isolation level repeatable read');
    if (snapshot !== undefined) await client.query(`set transaction snapshot ${pg.escapeLiteral(snapshot)}`);
    // A snapshot that was taken elsewhere shows nothing that this connection had read before.
    const along = early ?? (await readArchivesAlong(client, archives));
    const compared = await compareHere(client, definition, fold, along);
    await client.query('rollback');
    return compared;
  });

/** One after another: each is held against the log at a moment of its own. */
export const compareProjections = async (
  pool: pg.Pool,
  definitions: readonly ProjectionDefinition[],
  options: CompareOptions = {},
): Promise<readonly ProjectionComparison[]> => {
  const comparisons: ProjectionComparison[] = [];
  for (const definition of definitions) comparisons.push(await compareProjection(pool, definition, options));
  return comparisons;
};
