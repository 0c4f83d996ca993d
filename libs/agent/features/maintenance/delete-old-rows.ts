import type pg from 'pg';
import { translateDatabaseError } from '@antiphon/database';
import { isoTime } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';

const DAY_MS = 24 * 3_600_000;
/** Age of an idempotency claim, after which its key may be used again. */
export const CLAIM_DAYS = 7;
/** Age of the lease of a session that no process drives. */
export const LEASE_DAYS = 7;
/** Maximum number of rows in one transaction. */
const BATCH = 1_000;
const MAX_BATCHES = 100;

export interface DeleteOldRowsDeps {
  readonly pool: pg.Pool;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Deletes expired claims and leases. Returns the number of deleted rows. */
export type DeleteOldRows = () => Promise<number>;

/**
 * Creates the sweep of operational rows that grow with use. It deletes in small transactions, is
 * safe to repeat and to stop at any moment. Claims of open runs stay, however old they are.
 */
export const createDeleteOldRows =
  ({ pool, clock, logger }: DeleteOldRowsDeps): DeleteOldRows =>
  async () => {
    const deleteAll = async (text: string, days: number): Promise<number> => {
      const before = isoTime({ now: () => clock.now() - days * DAY_MS });
      let deleted = 0;
      for (let batch = 0; batch < MAX_BATCHES; batch++) {
        const { rows } = await pool
          .query<{ deleted: string }>(text, [before, BATCH])
          .catch((error: unknown) => {
            throw translateDatabaseError(error);
          });
        const count = Number(rows[0]?.deleted ?? 0);
        deleted += count;
        if (count < BATCH) break;
      }
      return deleted;
    };
    const claims = await deleteAll('select antiphon_delete_claims($1, $2) as deleted', CLAIM_DAYS);
    const leases = await deleteAll('select antiphon_delete_leases($1, $2) as deleted', LEASE_DAYS);
    if (claims + leases > 0) logger.info({ claims, leases }, 'old rows deleted');
    return claims + leases;
  };
