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
export { admissionsStayWithinLimits } from './budget-checks/admissions.js';
export { openBudgetBook, scopeName } from './budget-checks/budget-book.js';
export type { BudgetBook, SavedBook, ScopeBook } from './budget-checks/budget-book.js';
export { ledgerEqualsUsage } from './budget-checks/ledger-equals-usage.js';
export { reservationsEndOnce } from './budget-checks/reservation-states.js';
export { commandsHappenOnce } from './log-checks/commands.js';
export type { CommandClaim, CommandFact, CommandInput } from './log-checks/commands.js';
export { positionsAreGapless, versionsAreContiguous } from './log-checks/positions.js';
export { modelAttemptsAreNumbered } from './session-checks/model-attempts.js';
export { leaseEpochsGrow, sessionsBeginOnce } from './session-checks/session-streams.js';
export { approvalsPrecedeCalls } from './session-checks/approvals.js';
export { toolCallsHaveOneOutcome } from './session-checks/tool-calls.js';
export { turnsEndOnce } from './session-checks/turns.js';
export { runsFollowTheirGraph } from './run-checks/run-order.js';
