import type pg from 'pg';
import { isAppError } from '@antiphon/kernel';
import { assertDurable, translateDatabaseError } from '@antiphon/database';
import type { Logger } from '@antiphon/observability';

const PATIENCE_MS = 30_000;
const RETRY_MS = 500;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits until the database answers and is known to keep what it acknowledges; gives up after half a minute. */
export const waitForDatabase = async (
  pool: pg.Pool,
  logger: Logger,
  deadline = performance.now() + PATIENCE_MS,
): Promise<void> => {
  try {
    return await assertDurable(pool);
  } catch (error) {
    if (!isAppError(error) || error.kind !== 'transient' || performance.now() + RETRY_MS > deadline)
      throw error;
    logger.warn({ err: error }, 'the database cannot be reached yet; trying again');
  }
  await pause(RETRY_MS);
  return waitForDatabase(pool, logger, deadline);
};

/** Proves that a statement is answered. */
export const checkDatabase = async (pool: pg.Pool): Promise<void> => {
  await pool.query('select 1').catch((error: unknown) => {
    throw translateDatabaseError(error);
  });
};
