import { Controller, Inject } from '@nestjs/common';
import type pg from 'pg';
import type { z } from 'zod';
import { believedFacts as contract } from '@antiphon/contracts/memory';
import { inWorkspace, translateDatabaseError } from '@antiphon/database';
import type { WorkspaceQueries } from '@antiphon/database';
import { sleep, transient } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import { DATABASE_POOL } from '@antiphon/service-host';
import { FACT_COLUMNS, PROJECTION_NAME, keyHashOf, toFact } from '../projections/session-memory.events.js';
import type { FactRow } from '../projections/session-memory.events.js';
import { MAX_FACTS_READ } from './recall-rows.js';

// The last fact of each topic learned up to the position: each supersedes the one before it.
const BELIEVED_SQL = `with believed as (
    select distinct on (subject, predicate) ${FACT_COLUMNS}, position, ordinal from memory_facts
    where workspace = $1 and key_hash = $2 and position <= $3
    order by subject, predicate, position desc, ordinal desc)
  select * from (select * from believed order by position desc, ordinal desc limit ${MAX_FACTS_READ}) newest
  order by position, ordinal`;

const CHECKPOINT_SQL = `select position from projection_checkpoints where name = $1`;

const MAX_POLLS = 60;
const POLL_MS = 50;

/**
 * Lists the facts in force under a key at a position of the log, in the order in which they were
 * learned. Throws `MEMORY.VERSION_AHEAD` (transient) when the projection is not there within 3 s.
 */
@Controller()
export class BelievedFacts {
  constructor(@Inject(DATABASE_POOL) private readonly pool: pg.Pool) {}

  @HandleRequest(contract)
  async handle(request: z.output<typeof contract.request>): Promise<z.input<typeof contract.reply>> {
    const { workspace, sessionKey, position } = request;
    await this.#waitForProjection(position);
    const rows = await this.#query<FactRow>(inWorkspace(this.pool, workspace), BELIEVED_SQL, [
      ...[workspace, keyHashOf(sessionKey), position],
    ]);
    return { facts: rows.map((row) => ({ ...toFact(row), supersededAt: null })) };
  }

  async #waitForProjection(position: number): Promise<void> {
    for (let poll = 1; !(await this.#hasReached(position)); poll++) {
      if (poll === MAX_POLLS)
        throw transient('MEMORY.VERSION_AHEAD', 'memory has not reached this position of the log yet', {
          data: { position },
        });
      await sleep(POLL_MS);
    }
  }

  async #hasReached(position: number): Promise<boolean> {
    const [row] = await this.#query<{ position: string }>(this.pool, CHECKPOINT_SQL, [PROJECTION_NAME]);
    return Number(row?.position ?? 0) >= position;
  }

  async #query<Row extends pg.QueryResultRow>(
    db: WorkspaceQueries,
    text: string,
    values: unknown[],
  ): Promise<Row[]> {
    const { rows } = await db.query<Row>(text, values).catch((error: unknown) => {
      throw translateDatabaseError(error);
    });
    return rows;
  }
}
