export { open, violation } from './audit-check.js';
export type {
  AgentFact,
  AgentsCheck,
  AuditCheck,
  CheckRun,
  EventPlace,
  Finding,
  MoneyCheck,
  InboxCheck,
  LifecycleCheck,
  Parsed,
  PlanCheck,
  ReservationCheck,
  RunCheck,
  SessionCheck,
  StepStart,
  TaskCheck,
  TreeCheck,
} from './audit-check.js';
export { agentsBeginAndEndInOrder } from './agent-checks/agents-in-order.js';
export { messagesArriveOnce } from './agent-checks/ends-are-told-once.js';
export { inboxesAreReadForward, messagesAreReceivedOnce } from './agent-checks/inbox-reads.js';
export { agentsFollowTheirLifecycle, treesStayWithinLimits } from './agent-checks/lifecycle.js';
export { tasksEndOnce } from './agent-checks/task-claims.js';
export { treeBudgetsAreNested } from './budget-checks/tree-budgets.js';
export { admissionsStayWithinLimits, reservationsEndOnce } from './budget-checks/admissions.js';
export { BudgetBook, scopeName } from './budget-checks/budget-book.js';
export type { SavedBook, ScopeBook } from './budget-checks/budget-book.js';
export { ledgerEqualsUsage } from './budget-checks/ledger-equals-usage.js';
export { commandsHappenOnce, positionsAreGapless, versionsAreContiguous } from './log-checks.js';
export type { CommandClaim, CommandFact, CommandInput } from './log-checks.js';
export { approvalsPrecedeCalls } from './session-checks/approvals.js';
export { denialsAreOneEvent } from './session-checks/denied-calls.js';
export { modelAttemptsAreNumbered } from './session-checks/model-attempts.js';
export { leaseEpochsGrow, sessionsBeginOnce, turnsEndOnce } from './session-checks/session-order.js';
export { TAKEN_UP_WITHIN_MS, turnsAreTakenUp } from './session-checks/waiting-turns.js';
export { toolCallsHaveOneOutcome } from './session-checks/tool-calls.js';
export { chatsBeginOnce } from './chat-checks.js';
export { FileFold } from './file-fold.js';
export type { FoldedFile } from './file-fold.js';
export { fileTreesFoldInOrder } from './file-checks.js';
export { fileTreesStayWithinQuotas } from './file-quotas.js';
export { plansEqualTheirFiles } from './plan-checks.js';
export { runsFollowTheirGraph } from './run-checks.js';
