import type pg from 'pg';
import { translateDatabaseError } from '@antiphon/database';
import type { OpenReservation } from './find-outcome.js';

export interface OpenRow extends OpenReservation {
  readonly expired: boolean;
}

interface Row {
  readonly workspace: string;
  readonly reservation_id: string;
  readonly session_id: string;
  readonly attempt: number;
  readonly expired: boolean;
}

const COLUMNS = 'workspace, reservation_id, session_id, attempt';
const OF_SCOPE_SQL = `select ${COLUMNS}, open_until <= $4::timestamptz as expired from budget_reservations
  where workspace = $1 and open_until is not null and $2 = any (scope_keys) order by open_until limit $3`;
const ONE_SQL = `select ${COLUMNS}, false as expired from budget_reservations
  where workspace = $1 and reservation_id = $2 and open_until is not null`;
const LONGEST_SQL = `(select ${COLUMNS}, true as expired from budget_reservations
    where open_until <= $1::timestamptz order by open_until limit $2)
  union all
  (select ${COLUMNS}, false from budget_reservations
    where open_until > $1::timestamptz order by open_until limit $3)`;

const read = async (pool: pg.Pool, name: string, text: string, values: unknown[]): Promise<OpenRow[]> => {
  try {
    const { rows } = await pool.query<Row>({ name, text, values });
    return rows.map((row) => ({
      workspace: row.workspace,
      reservationId: row.reservation_id,
      sessionId: row.session_id,
      attempt: row.attempt,
      expired: row.expired,
    }));
  } catch (error) {
    throw translateDatabaseError(error);
  }
};

/** Open reservations that spend from a scope, oldest expiry first. `now` is ISO 8601. */
export const openInScope = (
  pool: pg.Pool,
  workspace: string,
  scopeKey: string,
  now: string,
  limit: number,
): Promise<OpenRow[]> => read(pool, 'budget_open_in_scope', OF_SCOPE_SQL, [workspace, scopeKey, limit, now]);

/** Open reservations of all workspaces: those whose time is over, and of the others those that end soonest. */
export const openLongest = (
  pool: pg.Pool,
  now: string,
  expired: number,
  others: number,
): Promise<OpenRow[]> => read(pool, 'budget_open_longest', LONGEST_SQL, [now, expired, others]);

/** A reservation, if it is open. */
export const openOne = async (
  pool: pg.Pool,
  workspace: string,
  reservationId: string,
): Promise<OpenRow | undefined> =>
  (await read(pool, 'budget_open_one', ONE_SQL, [workspace, reservationId]))[0];
