/** Injection tokens of metering. Each names the type that it provides. */
export const LIMIT_BOOK = Symbol('LimitBook');
export const BUDGET_LEDGER = Symbol('BudgetLedger');
export const END_RESERVATIONS = Symbol('EndReservations');
export const PAST_READS = Symbol('PastReads');
export const RULE_BOOK = Symbol('RuleBook');
