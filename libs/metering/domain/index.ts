export { decideAdmission } from './admission.decider.js';
export type { Admission, AdmissionAsk, ScopeStanding } from './admission.decider.js';
export { formatMicroUsd } from './refusal.js';
export type { Refusal } from './refusal.js';
export { amountOf, applyChange, balanceChanges, emptyBalance } from './balance.js';
export type { Balance, BalanceChange } from './balance.js';
export { MAX_CALL_TOKENS, decideBatch } from './ledger.decider.js';
export type { LedgerAnswer, LedgerCommand, LedgerDecision, LedgerRules, PriceOf } from './ledger.decider.js';
export { ledgerFrom } from './ledger.js';
export type { Ledger, LedgerSnapshot } from './ledger.js';
export { reservationDecider } from './reservation.decider.js';
export type { Figure, Reservation, ReservationCommand } from './reservation.decider.js';
export {
  agentScope,
  agentScopeKey,
  periodKeysAt,
  periodScopesAt,
  resetsAt,
  limitsInForce,
  scopesAt,
  taskScopes,
  sessionScopeKey,
} from './budget-scopes.js';
export type { BudgetLimits, ScopeLimits, SetLimits } from './budget-scopes.js';
