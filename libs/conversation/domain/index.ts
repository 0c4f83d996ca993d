export { attachedSections, renderAttached, renderSections } from './context/attached-files.js';
export type { AttachedSection, AttachedText } from './context/attached-files.js';
export { fileLabel, hasFiles, isImage, isSentAsBytes } from './context/message-files.js';
export type { PromptFile } from './context/message-files.js';
export { buildPrompt } from './context/build-prompt.js';
export type { MemoryContext, PromptParts } from './context/build-prompt.js';
export { explainPrompt } from './context/explain-prompt.js';
export type { ExplainedPrompt } from './context/explain-prompt.js';
export { estimatePrompt, estimateTokens, estimateTools } from './context/estimate-tokens.js';
export { editNote } from './session/edited-call.js';
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
  BlockedBy,
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
  DEFAULT_TRIES,
  maxRetryDelay,
  retryDelay,
  retryPolicyOf,
} from './session/retry-policy.js';
export type { DeferralReason } from './session/retry-policy.js';
export type { AgentPolicy, BeginCall, Guards, InFlight, ModelChoice, Step } from './turn/step.js';
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
