export { isAgentFrame } from './agent-frames.js';
export type { AgentFrame, MemoryEvent } from './agent-frames.js';
export { createClient } from './client.js';
export type { Approvals, Client, ClientOptions, Notification } from './client.js';
export type { ChatEvent, ChatStream, ChatStreamOptions } from './chat-stream.js';
export type { BufferLimits } from './buffered-stream.js';
export { CLIENT_ERRORS, ClientError } from './errors.js';
export type { EventFilter, EventItem, EventStream, EventStreamOptions } from './event-stream.js';
export type {
  AcceptedTurn,
  CallName,
  FrameKind,
  HttpClient,
  LogEvent,
  MethodName,
  MethodParams,
  MethodResult,
  PendingApproval,
  RouteName,
  RouteReply,
  RouteRequest,
  TurnFrame,
} from './reference.js';
export type { ServedTool, ToolCall, ToolRetryPolicy } from './served-tool.js';
export { serveTools } from './serve-tools.js';
export type { ServeEvent, ServeToolsOptions, ToolServer } from './serve-tools.js';
export { AnswerText } from './turn-stream.js';
export type { SessionStream, TurnOptions, TurnStream } from './turn-stream.js';
export type { OpenWebSocket, Token, WebSocketLike } from './web-socket.js';
