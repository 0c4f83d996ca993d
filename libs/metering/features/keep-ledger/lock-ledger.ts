import type pg from 'pg';
import type { Balance, Reservation } from '@antiphon/metering-domain';
import { reservationParams, scopeParams, toBalance, toReservation } from './ledger-rows.js';
import type { BalanceRow, LedgerState, ReservationName, ReservationRow, ScopeName } from './ledger-rows.js';

const LOCK_SQL = 'select * from budget_lock($1, $2, $3, $4)';

const isBalance = (row: BalanceRow | ReservationRow): row is BalanceRow =>
  (row as Partial<BalanceRow>).scope_key !== null;

const collect = (rows: readonly (BalanceRow | ReservationRow)[]): LedgerState => {
  const state = new Map<string, { balances: Map<string, Balance>; reservations: Map<string, Reservation> }>();
  for (const row of rows) {
    const own = state.get(row.workspace) ?? { balances: new Map(), reservations: new Map() };
    state.set(row.workspace, own);
    if (isBalance(row)) own.balances.set(row.scope_key, toBalance(row));
    else own.reservations.set(row.reservation_id, toReservation(row));
  }
  return state;
};

/**
 * Makes and locks the balances of these scopes, and of those of the reservations that exist, in the order of their keys,
 * and reads both, in one round trip (`budget_lock` in the metering migration). To be called first in a transaction.
 */
export const lockLedger = async (
  client: pg.ClientBase,
  scopes: readonly ScopeName[],
  reservations: readonly ReservationName[],
): Promise<LedgerState> => {
  const values = [...scopeParams(scopes), ...reservationParams(reservations)];
  const { rows } = await client.query<BalanceRow | ReservationRow>({
    name: 'budget_lock',
    text: LOCK_SQL,
    values,
  });
  return collect(rows);
};
