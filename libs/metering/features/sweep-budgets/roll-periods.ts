import type pg from 'pg';
import { translateDatabaseError } from '@antiphon/database';
import { isoTime } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';
import { periodScopesAt } from '@antiphon/metering-domain';
import type { BudgetLimits } from '@antiphon/metering-domain';
import type { EndReservations } from '../end-reservations/end-reservations.js';

export interface RollPeriodsDeps {
  readonly pool: pg.Pool;
  readonly clock: Clock;
  readonly limits: BudgetLimits;
  readonly endReservations: EndReservations;
}

/** Reservations that ended, and the periods that were looked at. */
export type RollPeriods = () => Promise<{ ended: number; periods: string[] }>;

const DAY_MS = 24 * 3_600_000;
const OPEN_SQL = `select distinct workspace from budget_reservations
  where open_until is not null and $1 = any (scope_keys)`;

const workspacesWithOpen = async (pool: pg.Pool, scopeKey: string): Promise<string[]> => {
  try {
    const { rows } = await pool.query<{ workspace: string }>(OPEN_SQL, [scopeKey]);
    return rows.map(({ workspace }) => workspace);
  } catch (error) {
    throw translateDatabaseError(error);
  }
};

/**
 * Brings the periods that are over to their final sums. A period begins by itself, with its first reservation; what is
 * left to do at its end are reservations whose outcome the log has and metering has not been told of.
 */
export const createRollPeriods =
  ({ pool, clock, limits, endReservations }: RollPeriodsDeps): RollPeriods =>
  async () => {
    const keysAt = (time: number) =>
      periodScopesAt(limits, isoTime({ now: () => time })).map(({ key }) => key);
    const current = new Set(keysAt(clock.now()));
    const periods = keysAt(clock.now() - DAY_MS).filter((key) => !current.has(key));
    let ended = 0;
    for (const key of periods)
      for (const workspace of await workspacesWithOpen(pool, key))
        ended += await endReservations.inScope(workspace, key);
    return { ended, periods };
  };
