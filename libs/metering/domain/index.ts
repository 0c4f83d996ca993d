export { decideAdmission } from './admission/admission.decider.js';
export type { Admission, AdmissionAsk, ScopeStanding } from './admission/admission.decider.js';
export { formatMicroUsd } from './admission/refusal.js';
export type { Refusal } from './admission/refusal.js';
export { amountOf, applyChange, balanceChanges, emptyBalance } from './balance/balance.js';
export type { Balance, BalanceChange } from './balance/balance.js';
export { MAX_CALL_TOKENS, decideBatch } from './ledger/ledger.decider.js';
export type {
  LedgerAnswer,
  LedgerCommand,
  LedgerDecision,
  LedgerRules,
  PriceOf,
} from './ledger/ledger.decider.js';
export { ledgerFrom } from './ledger/ledger.js';
export type { Ledger, LedgerSnapshot } from './ledger/ledger.js';
export { reservationDecider } from './reservation/reservation.decider.js';
export type { Reservation, ReservationCommand } from './reservation/reservation.decider.js';
export { periodScopesAt, resetsAt, scopesAt, sessionScopeKey } from './scope/budget-scopes.js';
export type { BudgetLimits } from './scope/budget-scopes.js';
