export {
  BREAKER_FAILURES,
  BREAKER_OPEN_MS,
  BREAKER_TRIAL_MS,
  NO_OPEN_CIRCUITS,
  circuitPhase,
  classifyFailure,
} from './circuit-breaker.js';
export type {
  CircuitPhase,
  CircuitState,
  FailureClass,
  OpenCircuit,
  OpenCircuits,
} from './circuit-breaker.js';
export { boundOfFiles, estimateFile, fileBound } from './file-tokens.js';
export {
  MAX_CALLS_PER_STEP,
  MODEL_FAILURE_REASONS,
  ModelFailure,
  filesOf,
  userPartsOf,
} from './model-port.js';
export type {
  AgentLimits,
  AssistantMessage,
  DriverLimits,
  ModelAnswer,
  ModelFailureDetails,
  ModelFailureReason,
  ModelFile,
  SentMedia,
  ModelInputs,
  ModelMessage,
  ModelPort,
  ModelPrompt,
  ModelRequest,
  ModelSink,
  ModelTool,
  ModelToolResult,
  ModelToolUse,
  ModelUsage,
  ReportedInput,
  RequestedToolCall,
  ToolMessage,
  UserMessage,
  UserPart,
} from './model-port.js';
export { budgetWithin, effortOf, thinkingTokens } from './thinking.js';
export type { Thinking } from './thinking.js';
export { MAX_CONNECTED_PROVIDERS, providerDecider } from './provider-registry.decider.js';
export type {
  ConnectProvider,
  ConnectedProvider,
  ProviderCommand,
  ProviderRegistry,
} from './provider-registry.decider.js';
export { secretsDecider } from './secrets.decider.js';
export type { SecretCommand, Secrets } from './secrets.decider.js';
