export { attachedSections, renderAttached } from './context/attached-files.js';
export type { AttachedText } from './context/attached-files.js';
export { buildPrompt } from './context/build-prompt.js';
export type { MemoryContext, PromptParts } from './context/build-prompt.js';
export { explainPrompt } from './context/explain-prompt.js';
export type { ExplainedPrompt } from './context/explain-prompt.js';
export { estimatePrompt, estimateTokens } from './context/estimate-tokens.js';
export { NOT_RECORDED, toRecalled } from './session/past-turns.js';
export { evolveSession } from './session/evolve-session.js';
export type { SessionCommand, ToolDeferral, ToolOutcome } from './session/session-command.js';
export { sessionDecider } from './session/session.decider.js';
export type { SessionDecider } from './session/session.decider.js';
export { waitingCall, waitingCalls } from './session/approval.decider.js';
export type { WaitingCall } from './session/approval.decider.js';
export { initialSession } from './session/session-state.js';
export type {
  CallApproval,
  Fork,
  OpenCall,
  OpenTurn,
  PastTurn,
  RecentWindow,
  SessionState,
  TurnToolCall,
} from './session/session-state.js';
export { beginCommand, followUps, canBegin } from './turn/follow-up.js';
export type { FollowUpContext } from './turn/follow-up.js';
export { nextStep } from './turn/next-step.js';
export { NOTHING_IN_FLIGHT } from './turn/step.js';
export {
  MAX_BACKOFF_MS,
  SUSPECT_AFTER,
  backoffMs,
  countLostDrivers,
  hasLostAllDrivers,
  maxRetryDelay,
  retryDelay,
  retryPolicyOf,
} from './session/retry-policy.js';
export type { DeferralReason } from './session/retry-policy.js';
export type { AgentHalt, AgentPolicy, BeginCall, InFlight, ModelChoice, Step } from './turn/step.js';
export { runDecider } from './run/run.decider.js';
export type { RunCommand } from './run/run.decider.js';
export { isOpenRun, openTasks } from './run/run-state.js';
export type { RunState, TaskState } from './run/run-state.js';
export { FairQueue } from './tasks/fair-queue.js';
export type { QueuedTask } from './tasks/fair-queue.js';
export { DEADLINE_ACTOR, failureDelayMs, lossDelayMs, taskDecider } from './tasks/task.decider.js';
export type { TaskCommand } from './tasks/task.decider.js';
export { isClaimedTask, isOpenTask } from './tasks/task-fold.js';
export type { TaskFold, TaskQueuedData } from './tasks/task-fold.js';
export { checkDefinition } from './workflow/check-definition.js';
export type { DefinitionRules } from './workflow/check-definition.js';
export { renderPrompt, resolveInputs } from './workflow/prompt-template.js';
export { workflowDecider } from './workflow/workflow.decider.js';
export type { ValidationResult, WorkflowCommand, WorkflowState } from './workflow/workflow.decider.js';
export { replaySession } from './replay/replay-session.js';
export type { ReplayedEvent, ReplayOverrides } from './replay/replay-session.js';
export type { ReplayNames } from './replay/replay-input.js';
export {
  HANDOVER_LOOP,
  HAND_OVER,
  HOP_LIMIT,
  MAX_HOPS,
  checkHop,
  factsOf,
  recipientOf,
} from './session/hand-over.js';
export type { HopVerdict } from './session/hand-over.js';
export { renderReceived } from './session/render-received.js';
export { PLAN_LIMITS, parsePlan, renderPlan, toStepText } from './plans/plan-file.js';
export type { ParsedStep, PlanDocument, PlanLine, PlanStepStatus } from './plans/plan-file.js';
export { documentOf, evolvePlan, initialPlan, nextPlanStep, planStatus } from './plans/plan-fold.js';
export type { PlanFold, PlanRun, PlanStatus, PlanStep } from './plans/plan-fold.js';
export { invalidPlan, mergePlan } from './plans/merge-plan.js';
export type { MergedPlan, PlanAuthor, PlanEdit } from './plans/merge-plan.js';
export { planDecider } from './plans/plan.decider.js';
export type { EndPlanRun, PlanCommand } from './plans/plan.decider.js';
