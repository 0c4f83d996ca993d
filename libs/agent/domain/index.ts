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
