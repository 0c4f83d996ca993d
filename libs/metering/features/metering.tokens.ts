/** Injection tokens of metering. Each names the type that it provides. */
export const BUDGET_LEDGER = Symbol('BudgetLedger');
export const BUDGET_LIMITS = Symbol('BudgetLimits');
export const END_RESERVATIONS = Symbol('EndReservations');
