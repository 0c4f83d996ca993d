export { createEndReservations } from './end-reservations/end-reservations.js';
export type { EndReservations } from './end-reservations/end-reservations.js';
export { createLedger } from './keep-ledger/ledger.js';
export type { BudgetLedger, LedgerDeps, LedgerOptions } from './keep-ledger/ledger.js';
export { MeteringModule } from './metering.module.js';
export { createReadBudgets } from './read-budgets/read-budgets.js';
export { rebuildBalances } from './rebuild-balances/rebuild-balances.js';
export { createReserveBudget } from './reserve-budget/reserve-budget.js';
export { createSettleBudget } from './settle-budget/settle-budget.js';
