import { z } from 'zod';
import { WorkspaceId } from '../log/index.js';
import { Cause } from '../log/stored-event.js';
import { defineRequest } from '../messaging/index.js';
import { MAX_RESULT_BYTES } from './result-limits.js';
import { MAX_TOOL_OUTPUT_BYTES, ToolName } from './tool-name.js';
import { MAX_TOOL_TIMEOUT_MS, ToolRetry } from './tool-policy.js';

export * from './channel-requests.js';
export * from './plugin-events.js';
export * from './plugin-requests.js';
export * from './remote-tool-events.js';
export * from './remote-tools.js';
export * from './result-limits.js';
export {
  DEFAULT_TOOL_RETRY,
  MAX_TOOL_ATTEMPTS,
  MAX_TOOL_BACKOFF_MS,
  MAX_TOOL_TIMEOUT_MS,
  MIN_TOOL_BACKOFF_MS,
  MIN_TOOL_TIMEOUT_MS,
  ToolRetry,
  narrowRetry,
  parseToolPolicy,
} from './tool-policy.js';
export type { DeclaredToolPolicy, RetryCaps, ToolPolicyResult } from './tool-policy.js';

export { MCP_STREAM, McpEvent, McpFeature, McpServerName, McpTool } from './mcp-events.js';
export {
  MAX_MCP_TOOLS,
  McpServerView,
  McpToolView,
  addMcpServer,
  approveMcpTools,
  listMcpServers,
  removeMcpServer,
} from './mcp-requests.js';

export { MAX_TOOL_OUTPUT_BYTES, ToolName };

/** Kinds of tools that the sandbox service hosts. */
export const ToolSourceKind = z.enum(['plugin', 'remote', 'mcp']);
export type ToolSourceKind = z.infer<typeof ToolSourceKind>;

/** One tool, as the plug-in's `describe()` declares it and as models see it. */
export const ToolDescription = z.object({
  name: ToolName,
  description: z.string().max(4_000),
  /** JSON Schema of the input. */
  inputSchema: z.record(z.string(), z.json()),
  /** Only an idempotent tool may be called again when its outcome is lost. */
  idempotent: z.boolean(),
  /** Retry policy of the tool, within the operator's limits; absent where neither sets one. */
  retry: ToolRetry.optional(),
  /** Timeout of one try, ms: the tool's own, at most the operator's limit. */
  timeoutMs: z.int().positive().optional(),
  /** Memory limit of its module, MiB. */
  memoryMb: z.int().positive().optional(),
  moduleDigest: z.string(),
  /** Capabilities of its module, sorted. */
  grants: z.array(z.string()).default([]),
  /** Absent in replies of older versions, which had plug-ins only. */
  source: ToolSourceKind.optional(),
  /** Number of programs that serve a remote tool now. */
  workers: z.int().nonnegative().optional(),
});
export type ToolDescription = z.infer<typeof ToolDescription>;

/** Returns whether a tool can have an effect outside of the sandbox service. */
export const canActOutside = ({ source = 'plugin', grants }: ToolDescription): boolean =>
  source !== 'plugin' || grants.length > 0;

/** Lists the tools that a workspace may call: those of plug-ins and of all other sources. */
export const listTools = defineRequest({
  subject: 'cmd.sandbox.tool.list',
  request: z.strictObject({ workspace: WorkspaceId }),
  reply: z.object({ tools: z.array(ToolDescription) }),
  timeoutMs: 5_000,
});

/** Outcome of a tool call. */
export const ToolReply = z.discriminatedUnion('outcome', [
  z.object({
    outcome: z.literal('completed'),
    /** The result, or the head and tail of a large one. */
    content: z.string(),
    isError: z.boolean(),
    moduleDigest: z.string(),
    durationMs: z.number(),
    /** Set for a result that the process `holder` hands over by `readHeldResult`. */
    large: z
      .object({ digest: z.string(), size: z.int().positive().max(MAX_RESULT_BYTES), holder: z.string() })
      .optional(),
  }),
  z.object({
    outcome: z.literal('failed'),
    /**
     * One of `TOOL.UNKNOWN TOOL.TIMEOUT TOOL.TRAP TOOL.MEMORY TOOL.OUTPUT TOOL.DENIED TOOL.CHANGED
     * TOOL.UNAVAILABLE TOOL.CANCELLED TOOL.NO_WORKER TOOL.WORKER_LOST TOOL.SERVER_FAILED`
     */
    code: z.string(),
    message: z.string(),
    /** Cause whose text `message` is. Absent in replies of older versions. */
    cause: Cause.optional(),
    /**
     * True if the tool had sent a request to the outside before it failed. Unless the tool is
     * idempotent, the outcome is unknown then.
     */
    mayHaveActed: z.boolean().optional(),
    durationMs: z.number(),
  }),
]);
export type ToolReply = z.output<typeof ToolReply>;

/** Time of a message by the clock of the process that sent it. */
export const CallerTime = z.object({
  /** The process, unique for its incarnation. */
  caller: z.string().min(1).max(200),
  /**
   * Milliseconds since the epoch by the caller's steady clock, which never steps. Only differences
   * between times of one caller count.
   */
  at: z.number(),
});
export type CallerTime = z.infer<typeof CallerTime>;

/**
 * Runs one tool call in a fresh instance. A repeated `callId` gets the first call's result while
 * that is cached.
 */
export const callTool = defineRequest({
  subject: 'cmd.sandbox.tool.call',
  request: z.strictObject({
    workspace: WorkspaceId,
    sessionId: z.uuid(),
    callId: z.uuid(),
    /** Lease epoch of the driver. An epoch below one already seen for the session is refused. */
    epoch: z.int().nonnegative(),
    /** Agent of the session. Its approval rules apply; without it, those of all agents. */
    agentId: z.string().min(1).max(200).optional(),
    /** Time at which the caller last proved that the call is its own. */
    sentAt: CallerTime.optional(),
    /**
     * Deadline for the start of the call, by the caller's clock of `sentAt`. The sandbox does not
     * start the call after it, and replies `TOOL.UNAVAILABLE`.
     */
    notAfter: z.number().optional(),
    name: ToolName,
    input: z.json(),
    /** The same for each try of this call. The tool and the hosts that it requests get it. */
    idempotencyKey: z.string().regex(/^[\x21-\x7e]{1,190}$/),
    /** Timeout that the caller wants, ms. The tool's own timeout applies if it is shorter. */
    timeoutMs: z.int().positive().max(MAX_TOOL_TIMEOUT_MS).optional(),
    /**
     * Set while the request of the call is being committed to the log. A module with a capability
     * is not run then, and the reply is `TOOL.UNAVAILABLE`.
     */
    onlyWithoutGrants: z.literal(true).optional(),
    /**
     * Module and grants that were approved. Any other module or grants are refused with
     * `TOOL.CHANGED`.
     */
    approved: z.strictObject({ moduleDigest: z.string(), grants: z.array(z.string()) }).optional(),
    /**
     * Attempt of a call that is not idempotent. Before its first effect the sandbox asks the caller
     * of `sentAt` for permission (`beginToolCall`). Without it the tool does not run.
     */
    attemptId: z.uuid().optional(),
  }),
  reply: ToolReply,
  timeoutMs: 65_000,
});

/**
 * Finds a call whose reply is late. Every sandbox process gets the request, outside the queue
 * group. Only a process that runs the call, or has its outcome cached, replies. Without a reply the
 * call or its outcome is lost.
 */
export const findCall = defineRequest({
  subject: 'cmd.sandbox.call.find',
  request: z.strictObject({ workspace: WorkspaceId, sessionId: z.uuid(), callId: z.uuid() }),
  reply: z.discriminatedUnion('state', [
    z.object({ state: z.literal('running') }),
    z.object({ state: z.literal('ended'), reply: ToolReply }),
  ]),
  timeoutMs: 1_000,
});

const HELD = { workspace: WorkspaceId, callId: z.uuid() };
/** Reads a part of a large result, from the process that holds it. */
export const readHeldResult = defineRequest({
  subject: 'cmd.sandbox.result.read',
  request: z.strictObject({ ...HELD, offset: z.int().nonnegative() }),
  /** At most `RESULT_PART_BYTES` bytes, in base64. */
  reply: z.object({ data: z.base64() }),
  timeoutMs: 5_000,
  toProcess: true,
});
/** Tells the process that holds a large result that its caller has it. */
export const releaseHeldResult = defineRequest({
  subject: 'cmd.sandbox.result.release',
  request: z.strictObject(HELD),
  reply: z.object({}),
  timeoutMs: 1_000,
  toProcess: true,
});

/**
 * Subject that cancels a call, because its turn was cancelled. It is published to every sandbox
 * process. The process that runs the call ends its cell; the others ignore the message. Losing the
 * message is harmless.
 */
export const TOOL_CANCEL_SUBJECT = 'hint.sandbox.cancel';
export const ToolCancel = z.object({
  workspace: WorkspaceId,
  sessionId: z.uuid(),
  callId: z.uuid(),
  epoch: z.int().nonnegative(),
});
export type ToolCancel = z.infer<typeof ToolCancel>;

/**
 * Subject on which each caller publishes its clock to every sandbox process, so that the sandbox
 * can compare a request's deadline with its own clock. A lost message is harmless.
 */
export const CALLER_CLOCK_SUBJECT = 'hint.sandbox.clock';
