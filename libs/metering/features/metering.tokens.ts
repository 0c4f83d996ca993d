/** Injection tokens of metering. Each names the type that it provides. */
export const BUDGET_LIMIT_STORE = Symbol('BudgetLimitStore');
export const BUDGET_LEDGER = Symbol('BudgetLedger');
export const END_RESERVATIONS = Symbol('EndReservations');
export const PAST_READS = Symbol('PastReads');
export const USAGE_PROJECTION = Symbol('UsageProjection');
export const BUDGET_RULE_STORE = Symbol('BudgetRuleStore');
