export { MODEL_FAILURE_REASONS, ModelFailure } from './model-port.js';
export type {
  AssistantMessage,
  ModelAnswer,
  ModelFailureDetails,
  ModelFailureReason,
  ModelMessage,
  ModelPort,
  ModelPrompt,
  ModelRequest,
  ModelSink,
  ModelTool,
  ModelToolResult,
  ModelToolUse,
  ModelUsage,
  RequestedToolCall,
  ToolMessage,
  UserMessage,
} from './model-port.js';
export {
  BREAKER_FAILURES,
  BREAKER_OPEN_MS,
  BREAKER_TRIAL_MS,
  NO_OPEN_CIRCUITS,
  circuitPhase,
  classifyFailure,
} from './circuit-breaker.js';
export type {
  CircuitState,
  CircuitPhase,
  FailureClass,
  OpenCircuit,
  OpenCircuits,
} from './circuit-breaker.js';
export { buildPrompt } from './context/build-prompt.js';
export type { PromptParts } from './context/build-prompt.js';
export type { MemoryContext } from './context/build-system.js';
export { clipText } from './context/clip-text.js';
export { estimatePrompt, estimateTokens } from './context/estimate-tokens.js';
export { NOT_RECORDED, toRecalled } from './session/fork-session.js';
export { evolveSession } from './session/evolve-session.js';
export type { SessionCommand, ToolDeferral, ToolOutcome } from './session/session-command.js';
export { sessionDecider } from './session/session.decider.js';
export type { SessionDecider } from './session/session.decider.js';
export { waitingCall, waitingCalls } from './session/approval-state.js';
export type { CallApproval, WaitingCall } from './session/approval-state.js';
export { initialSession } from './session/session-state.js';
export type {
  Fork,
  OpenCall,
  OpenTurn,
  PastTurn,
  RecentWindow,
  SessionState,
  TurnEnding,
  TurnToolCall,
} from './session/session-state.js';
export { beginCommand, followUps, canBegin } from './turn/follow-up.js';
export type { FollowUpContext } from './turn/follow-up.js';
export { nextStep } from './turn/next-step.js';
export { NOTHING_IN_FLIGHT } from './turn/step.js';
export { maxRetryDelay, retryPolicyOf, retryDelay } from './turn/retry-policy.js';
export type { DeferralReason } from './turn/retry-policy.js';
export type { AgentPolicy, BeginCall, InFlight, ModelChoice, Step } from './turn/step.js';
export { MAX_BACKOFF_MS, MAX_CALLS_PER_STEP, backoffMs } from './turn/turn-policy.js';
export { runDecider } from './run/run.decider.js';
export type { RunCommand } from './run/run.decider.js';
export { isOpenRun, tasksToDo } from './run/run-state.js';
export type { RunState, TaskState } from './run/run-state.js';
export { checkDefinition } from './workflow/check-definition.js';
export type { DefinitionRules } from './workflow/check-definition.js';
export { renderPrompt } from './workflow/prompt-template.js';
export { workflowDecider } from './workflow/workflow.decider.js';
export type { ValidationResult, WorkflowCommand, WorkflowState } from './workflow/workflow.decider.js';
export { resolveInputs } from './run/resolve-inputs.js';
export { replaySession } from './replay/replay-session.js';
export type { ReplayedEvent, ReplayOverrides } from './replay/replay-session.js';
export type { ReplayNames } from './replay/replay-names.js';
