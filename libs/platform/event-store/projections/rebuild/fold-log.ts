import type pg from 'pg';
import { COLUMNS, type EventRow, toEvent } from '../../read/log-reader.js';
import { applyWithin } from '../projection-batch.js';
import type { ProjectionDefinition } from './projection-definition.js';

/** How far the shadows are. */
export interface Fold {
  /** The last position that they contain. */
  readonly position: number;
  /** Events that were applied or parked on the way. */
  readonly events: number;
}

const BATCH = 500;

const PAGE_SQL = `select ${COLUMNS} from events where position > $1 and position <= $2 and category = any ($3)
  order by position limit ${BATCH}`;

/** One small batch, within the caller's transaction. What cannot be handled is parked among the shadows. */
const foldBatch = async (
  client: pg.ClientBase,
  definition: ProjectionDefinition,
  { position, events }: Fold,
  upTo: number,
): Promise<Fold> => {
  const values = [position, upTo, definition.categories];
  const { rows } = await client.query<EventRow>({ name: 'antiphon_fold_page', text: PAGE_SQL, values });
  const page = rows.map(toEvent);
  await applyWithin(definition, client, page);
  const last = page.length < BATCH ? upTo : (page.at(-1)?.position ?? upTo);
  return { position: last, events: events + page.length };
};

/** Folds on up to a position, a transaction each batch: nothing is held back meanwhile. */
export const foldInBatches = async (
  client: pg.ClientBase,
  definition: ProjectionDefinition,
  from: Fold,
  upTo: number,
): Promise<Fold> => {
  let fold = from;
  while (fold.position < upTo) {
    await client.query('begin');
    try {
      fold = await foldBatch(client, definition, fold, upTo);
      await client.query('commit');
    } catch (error) {
      await client.query('rollback').catch(() => undefined);
      throw error;
    }
  }
  return fold;
};

/** Folds on up to a position within the transaction that is under way. */
export const foldWithin = async (
  client: pg.ClientBase,
  definition: ProjectionDefinition,
  from: Fold,
  upTo: number,
): Promise<Fold> => {
  let fold = from;
  while (fold.position < upTo) fold = await foldBatch(client, definition, fold, upTo);
  return fold;
};
