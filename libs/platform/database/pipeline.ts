import pg from 'pg';
import type { Logger } from '@antiphon/observability';
import { checkPostgresPatch } from '@antiphon/unsafe';

export interface PipelineOptions {
  /** SQL that prepares each new connection: settings, statements. */
  readonly prelude: string;
  readonly logger?: Logger;
}

/**
 * One connection beside another pool, to the same database with the same role and limits, in pg's pipeline mode: what
 * is issued without waiting is sent without waiting. Outside of `begin read write` it refuses to write: what was sent
 * behind a `begin` that failed would else be committed statement by statement.
 */
export const createPipelinedPool = (like: pg.Pool, options: PipelineOptions): pg.Pool => {
  const prepare = (client: pg.ClientBase): Promise<unknown> =>
    client.query(`set default_transaction_read_only = on; ${options.prelude}`);
  if (options.logger) checkPostgresPatch(new pg.Client(), options.logger);
  const pool = new pg.Pool({
    ...like.options,
    // The pool hides it from copies.
    password: like.options.password,
    max: 1,
    min: 0,
    pipeline: true,
    // The pool waits for what this answers, and hands out no client that it has failed for; its type hides that.
    onConnect: prepare as (client: pg.ClientBase) => void,
  });
  // Replaced at the next use; unheard, it would end the process.
  pool.on('error', (error) => options.logger?.warn({ err: error }, 'an idle database connection broke'));
  return pool;
};
