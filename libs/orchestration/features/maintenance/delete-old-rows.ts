import type pg from 'pg';
import { BlobStore, translateDatabaseError } from '@antiphon/database';
import { isoTime } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';

const DAY_MS = 24 * 3_600_000;
/** Age of the lease of a session that no process drives. */
export const LEASE_DAYS = 7;
/** Age of bytes of files that no fact cites. */
export const UNCITED_DAYS = 1;
/** Maximum number of rows in one transaction. */
const BATCH = 1_000;
const MAX_BATCHES = 100;

export interface DeleteOldRowsDeps {
  readonly pool: pg.Pool;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Age of an idempotency claim, days, after which its key may be used again. */
  readonly claimDays: number;
}

/**
 * Deletes expired claims, leases, rows of archived streams, and bytes that no fact cites. Returns
 * the number of rows.
 */
export type DeleteOldRows = () => Promise<number>;

/**
 * Creates the sweep of operational rows that grow with use. It deletes in small transactions, is
 * safe to repeat and to stop at any moment. Claims of open runs stay, however old they are.
 */
export const createDeleteOldRows = ({ pool, clock, logger, claimDays }: DeleteOldRowsDeps): DeleteOldRows => {
  const select = async (text: string, values: readonly unknown[]): Promise<number | null> => {
    const { rows } = await pool
      .query<{ deleted: string | null }>(text, [...values])
      .catch((error: unknown) => {
        throw translateDatabaseError(error);
      });
    const deleted = rows[0]?.deleted ?? null;
    return deleted === null ? null : Number(deleted);
  };
  const deleteOlder = async (text: string, days: number): Promise<number> => {
    const before = isoTime({ now: () => clock.now() - days * DAY_MS });
    let deleted = 0;
    for (let batch = 0; batch < MAX_BATCHES; batch++) {
      const count = (await select(text, [before, BATCH])) ?? 0;
      deleted += count;
      if (count < BATCH) break;
    }
    return deleted;
  };
  const deleteArchived = async (): Promise<number> => {
    let deleted = 0;
    for (let archive = 0; archive < MAX_BATCHES; archive++) {
      const count = await select('select antiphon_delete_archived_rows() as deleted', []);
      if (count === null) break;
      deleted += count;
    }
    return deleted;
  };
  return async () => {
    const claims = await deleteOlder('select antiphon_delete_claims($1, $2) as deleted', claimDays);
    const leases = await deleteOlder('select antiphon_delete_leases($1, $2) as deleted', LEASE_DAYS);
    const archived = await deleteArchived();
    const before = isoTime({ now: () => clock.now() - UNCITED_DAYS * DAY_MS });
    const blobs = await new BlobStore(pool).sweep(before);
    const rows = claims + leases + archived + blobs;
    if (rows > 0) logger.info({ claims, leases, archived, blobs }, 'old rows deleted');
    return rows;
  };
};
