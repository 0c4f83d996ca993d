/** Injection tokens of metering. Each names the type that it provides. */
export const AGENT_LIMITS = Symbol('AgentLimitBook');
export const BUDGET_LEDGER = Symbol('BudgetLedger');
export const BUDGET_LIMITS = Symbol('BudgetLimits');
export const END_RESERVATIONS = Symbol('EndReservations');
export const PAST_READS = Symbol('PastReads');
