import type pg from 'pg';
import { translateDatabaseError } from '@antiphon/database';

/** Long enough for one statement over a large log; the pool's own limit is for requests. */
const STATEMENT_TIMEOUT = '10min';

/**
 * Runs `work` on one snapshot of the whole database: what services write meanwhile is not seen, so that the log and
 * what is derived from it are compared at the same point. `prepare` and `end` have the same session before and after it.
 */
export const onSnapshot = async <P, T>(
  pool: pg.Pool,
  prepare: (client: pg.PoolClient) => Promise<P>,
  work: (client: pg.PoolClient, prepared: P) => Promise<T>,
  end: (client: pg.PoolClient, prepared: P) => Promise<void>,
): Promise<T> => {
  const client = await pool.connect().catch((error: unknown) => {
    throw translateDatabaseError(error);
  });
  let broken: Error | undefined;
  try {
    await client.query(`set statement_timeout = '${STATEMENT_TIMEOUT}'`);
    const prepared = await prepare(client);
    await client.query('begin isolation level repeatable read, read only');
    const result = await work(client, prepared);
    await client.query('commit');
    await end(client, prepared);
    await client.query('reset statement_timeout');
    return result;
  } catch (error) {
    // Closed with all that it prepared.
    broken = error as Error;
    throw translateDatabaseError(error);
  } finally {
    client.release(broken);
  }
};
