export { AnswerApproval } from './approvals/answer-approval.handler.js';
export { ApprovalDeadlines, ApprovalTimers } from './approvals/approval-timers.js';
export type { ApprovalChange } from './approvals/approval-timers.js';
export type { OnApprovalChange } from './approvals/approval-timers.js';
export { ConversationModule } from './conversation.module.js';
export {
  DRIVE_TIMES,
  MODEL_PORT,
  NATIVE_TOOLS,
  ON_APPROVAL_CHANGE,
  ON_TURN_SETTLED,
  TASK_BUDGETS,
  TOOL_RETRIES,
  TURN_COMMANDS,
} from './conversation.tokens.js';
export { retryTransient } from './sessions/retry-transient.js';
export { keyOf, readBinding } from './sessions/session-keys.js';
export { StartSession } from './sessions/start-session.handler.js';
export { SessionRecovery } from './sessions/session-recovery.js';
export { SessionRegistry } from './sessions/session-registry.js';
export { Shutdown } from './sessions/shutdown.js';
export { Stopped } from './sessions/stopped.js';
export { TURN_END_SUBJECT, TurnEndWatcher, readOutcome } from './sessions/turn-ends.js';
export type { TurnCommands, TurnOutcome, TurnRef } from './sessions/turn-ends.js';
export { FileAccess, describeWith, isWithin, resultOf } from './tools/file-access.js';
export type { FileAccessDeps, FileInput } from './tools/file-access.js';
export type { FileToolName } from './tools/file-schemas.js';
export type { NativeCall, NativeToolPort, ToolStep } from './tools/native-tool.port.js';
export { NATIVE_INPUT, NATIVE_MODULE } from './tools/tool-schemas.js';
export { CancelTurn } from './turns/cancel-turn.handler.js';
export { ToolCatalog } from './turns/tool-catalog.js';
export { SessionWork } from './turns/session-work.js';
export { SubmitTurn } from './turns/submit-turn.handler.js';
export { VendorFigures } from './turns/vendor-figures.js';
export { LocalRetries, ToolRetry } from './turns/tool-retry.js';
export type { ToolRetries, ToolRetryRef } from './turns/tool-retry.js';
