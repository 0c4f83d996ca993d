import type pg from 'pg';
import { PAGE_BYTES } from '../../event-store.port.js';
import { isPageFull, type PagedRow, pageSql, toEvent } from '../../read/event-row.js';
import { applyInTransaction } from '../projection-batch.js';
import type { ProjectionDefinition } from '../projection-definition.js';
import { shadowTable } from './shadow-tables.js';

/** Progress of a fold of the log into shadow tables. */
export interface Fold {
  /** Last position that the shadow tables contain. */
  readonly position: number;
  /** Number of events that were applied or parked. */
  readonly events: number;
}

export const EMPTY_FOLD: Fold = { position: 0, events: 0 };

export interface FoldOptions {
  /** Folder of archive files to fold with the log; without it no event may be archived. */
  readonly archives?: string | undefined;
}

const BATCH = 500;

const PAGE_SQL = `${pageSql(
  `where position > $1 and position <= $2 and category = any ($3) order by position limit ${BATCH}`,
  'position',
  String(PAGE_BYTES),
)} order by position`;

/**
 * Folds one batch within the caller's transaction. An event that fails is parked in the shadows.
 */
const foldBatch = async (
  client: pg.ClientBase,
  definition: ProjectionDefinition,
  { position, events }: Fold,
  upTo: number,
): Promise<Fold> => {
  const values = [position, upTo, definition.categories];
  const { rows } = await client.query<PagedRow>({ name: 'antiphon_fold_page', text: PAGE_SQL, values });
  const page = rows.map(toEvent);
  await applyInTransaction(definition, client, page);
  const last = isPageFull(rows, { limit: BATCH }) ? (page.at(-1)?.position ?? upTo) : upTo;
  return { position: last, events: events + page.length };
};

/** Folds up to a position within the current transaction. */
export const foldInTransaction = async (
  client: pg.ClientBase,
  definition: ProjectionDefinition,
  from: Fold,
  upTo: number,
): Promise<Fold> => {
  let fold = from;
  while (fold.position < upTo) fold = await foldBatch(client, definition, fold, upTo);
  return fold;
};

/** Number of events after which the shadow tables get statistics, and then at each doubling. */
const FIRST_ANALYZE = 1_000;

/** Returns true if a doubling of the first number of events is between two numbers. */
const isDoubling = (before: number, after: number): boolean =>
  after >= FIRST_ANALYZE &&
  (before < FIRST_ANALYZE ||
    Math.floor(Math.log2(after / FIRST_ANALYZE)) > Math.floor(Math.log2(before / FIRST_ANALYZE)));

/**
 * Gives the shadow tables statistics at each doubling of the events. No vacuum visits temporary
 * tables, and without statistics each index that begins with the workspace costs the same.
 */
export const analyzeShadows = async (
  client: pg.ClientBase,
  { tables }: Pick<ProjectionDefinition, 'tables'>,
  before: number,
  after: number,
): Promise<void> => {
  if (!isDoubling(before, after)) return;
  await client.query(`analyze ${tables.map(({ name }) => shadowTable(name)).join(', ')}`);
};

/**
 * Folds up to a position with a transaction per batch, which holds no lock or snapshot for long.
 */
const foldInBatches = async (
  client: pg.ClientBase,
  definition: ProjectionDefinition,
  from: Fold,
  upTo: number,
): Promise<Fold> => {
  let fold = from;
  while (fold.position < upTo) {
    await client.query('begin');
    try {
      const before = fold.events;
      fold = await foldBatch(client, definition, fold, upTo);
      await analyzeShadows(client, definition, before, fold.events);
      await client.query('commit');
    } catch (error) {
      await client.query('rollback').catch(() => undefined);
      throw error;
    }
  }
  return fold;
};

/** Number of events that the last step may fold while it holds a snapshot or a lock. */
const MAX_REMAINING = 1_000;
/** Limit for a log that grows faster than it can be folded: the last step then folds the rest. */
const MAX_ROUNDS = 10;

/** Folds until few events remain before the target, which moves under live traffic. */
export const foldUntilNear = async (
  client: pg.ClientBase,
  definition: ProjectionDefinition,
  readTarget: () => Promise<number>,
): Promise<Fold> => {
  let fold = EMPTY_FOLD;
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const upTo = await readTarget();
    if (upTo - fold.position <= MAX_REMAINING) break;
    fold = await foldInBatches(client, definition, fold, upTo);
  }
  return fold;
};
