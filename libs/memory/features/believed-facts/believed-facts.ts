import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { z } from 'zod';
import type { believedFacts as contract } from '@antiphon/contracts/memory';
import { translateDatabaseError } from '@antiphon/database';
import { transient } from '@antiphon/kernel';
import { FACT_COLUMNS, keyHashOf, toFact } from '../projections/fact-rows.js';
import type { FactRow } from '../projections/fact-rows.js';
import { PROJECTION_NAME } from '../projections/session-memory.events.js';
import { MAX_FACTS_READ } from '../recall-facts/recall-sql.js';

export type BelievedRequest = z.output<(typeof contract)['request']>;
export type BelievedReply = z.input<(typeof contract)['reply']>;
export type BelievedFacts = (request: BelievedRequest) => Promise<BelievedReply>;

// Of each topic the fact that was learned last by then: each supersedes the one before it, and none is taken back.
const SQL = `with believed as (
    select distinct on (subject, predicate) ${FACT_COLUMNS}, position, ordinal from memory_facts
    where workspace = $1 and key_hash = $2 and position <= $3
    order by subject, predicate, position desc, ordinal desc)
  select * from (select * from believed order by position desc, ordinal desc limit ${MAX_FACTS_READ}) newest
  order by position, ordinal`;

const CHECKPOINT = `select position from projection_checkpoints where name = $1`;

const LOOKS = 60;
const LOOK_MS = 50;

/**
 * What was believed under a key when the log was at a position, in the order in which it was learned. Throws
 * `MEMORY.VERSION_AHEAD` (transient) when the projection does not come there within three seconds.
 */
export const createBelievedFacts = (pool: pg.Pool): BelievedFacts => {
  const query = async <Row extends pg.QueryResultRow>(text: string, values: unknown[]): Promise<Row[]> => {
    const { rows } = await pool.query<Row>(text, values).catch((error: unknown) => {
      throw translateDatabaseError(error);
    });
    return rows;
  };
  const isThere = async (position: number): Promise<boolean> => {
    const [row] = await query<{ position: string }>(CHECKPOINT, [PROJECTION_NAME]);
    return Number(row?.position ?? 0) >= position;
  };
  return async ({ workspace, sessionKey, position }) => {
    for (let look = 1; !(await isThere(position)); look++) {
      if (look === LOOKS)
        throw transient('MEMORY.VERSION_AHEAD', 'memory has not come to this position of the log yet', {
          data: { position },
        });
      await sleep(LOOK_MS);
    }
    const rows = await query<FactRow>(SQL, [workspace, keyHashOf(sessionKey), position]);
    return { facts: rows.map((row) => ({ ...toFact(row), supersededAt: null })) };
  };
};
