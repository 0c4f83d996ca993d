/** BudgetLedger. */
export const BUDGET_LEDGER = Symbol('BUDGET_LEDGER');
/** EndReservations. */
export const END_RESERVATIONS = Symbol('END_RESERVATIONS');
/** ReserveBudget. */
export const RESERVE_BUDGET = Symbol('RESERVE_BUDGET');
/** SettleBudget. */
export const SETTLE_BUDGET = Symbol('SETTLE_BUDGET');
/** ReadBudgets. */
export const READ_BUDGETS = Symbol('READ_BUDGETS');
/** RollPeriods. */
export const ROLL_PERIODS = Symbol('ROLL_PERIODS');
