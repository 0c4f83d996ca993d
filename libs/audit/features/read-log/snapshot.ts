import type pg from 'pg';
import { translateDatabaseError } from '@antiphon/database';

/** Long enough for one statement over a large log; the pool's own limit is for requests. */
const STATEMENT_TIMEOUT = '10min';

/**
 * Runs `work` on one snapshot of the whole database: what services write meanwhile is not seen, so that the log and
 * what is derived from it are compared at the same point.
 */
export const onSnapshot = async <T>(
  pool: pg.Pool,
  work: (client: pg.PoolClient) => Promise<T>,
): Promise<T> => {
  const client = await pool.connect().catch((error: unknown) => {
    throw translateDatabaseError(error);
  });
  let broken: Error | undefined;
  try {
    await client.query('begin isolation level repeatable read, read only');
    await client.query(`set local statement_timeout = '${STATEMENT_TIMEOUT}'`);
    const result = await work(client);
    await client.query('commit');
    return result;
  } catch (error) {
    await client.query('rollback').catch((failure: Error) => {
      broken = failure;
    });
    throw translateDatabaseError(error);
  } finally {
    client.release(broken);
  }
};
