export { open, violation } from './audit-check.js';
export type {
  AuditCheck,
  CheckRun,
  EventPlace,
  Finding,
  MoneyCheck,
  Parsed,
  ReservationCheck,
  RunCheck,
  SessionCheck,
} from './audit-check.js';
export { admissionsStayWithinLimits, reservationsEndOnce } from './budget-checks/admissions.js';
export { BudgetBook, scopeName } from './budget-checks/budget-book.js';
export type { SavedBook, ScopeBook } from './budget-checks/budget-book.js';
export { ledgerEqualsUsage } from './budget-checks/ledger-equals-usage.js';
export { commandsHappenOnce, positionsAreGapless, versionsAreContiguous } from './log-checks.js';
export type { CommandClaim, CommandFact, CommandInput } from './log-checks.js';
export { approvalsPrecedeCalls } from './session-checks/approvals.js';
export { modelAttemptsAreNumbered } from './session-checks/model-attempts.js';
export { leaseEpochsGrow, sessionsBeginOnce, turnsEndOnce } from './session-checks/session-order.js';
export { toolCallsHaveOneOutcome } from './session-checks/tool-calls.js';
export { runsFollowTheirGraph } from './run-checks.js';
