import { z } from 'zod';
import { WorkspaceId } from '../log/index.js';
import { defineRequest } from '../messaging/index.js';
import { MAX_TOOL_TIMEOUT_MS, ToolRetry } from './tool-policy.js';

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

export const ToolName = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/);

/** What a plug-in's `describe()` says of one tool, as providers are told it. */
export const ToolDescription = z.object({
  name: ToolName,
  description: z.string().max(4_000),
  /** JSON Schema of the input. */
  inputSchema: z.record(z.string(), z.json()),
  /** Only an idempotent tool may be called again when its outcome was lost. */
  idempotent: z.boolean(),
  /** What it declares, within what the operator allows; absent where neither says anything. */
  retry: ToolRetry.optional(),
  /** For one try: what the tool declares, at most what the operator allows. */
  timeoutMs: z.int().positive().optional(),
  moduleDigest: z.string(),
  /** What its module may do, sorted. */
  grants: z.array(z.string()).default([]),
});
export type ToolDescription = z.infer<typeof ToolDescription>;

export const listTools = defineRequest({
  subject: 'cmd.sandbox.tool.list',
  request: z.strictObject({ workspace: WorkspaceId }),
  reply: z.object({ tools: z.array(ToolDescription) }),
  timeoutMs: 5_000,
});

export const MAX_TOOL_OUTPUT_BYTES = 1024 * 1024;

/** How a call ended. */
export const ToolReply = z.discriminatedUnion('outcome', [
  z.object({
    outcome: z.literal('completed'),
    content: z.string(),
    isError: z.boolean(),
    moduleDigest: z.string(),
    durationMs: z.number(),
  }),
  z.object({
    outcome: z.literal('failed'),
    /** `TOOL.UNKNOWN TOOL.TIMEOUT TOOL.TRAP TOOL.MEMORY TOOL.OUTPUT TOOL.DENIED TOOL.CHANGED TOOL.UNAVAILABLE TOOL.CANCELLED` */
    code: z.string(),
    message: z.string(),
    durationMs: z.number(),
  }),
]);
export type ToolReply = z.output<typeof ToolReply>;

/** Runs one tool call in a fresh instance. The same `callId` again joins the first one's answer while it is remembered. */
export const callTool = defineRequest({
  subject: 'cmd.sandbox.tool.call',
  request: z.strictObject({
    workspace: WorkspaceId,
    sessionId: z.uuid(),
    callId: z.uuid(),
    /** Lease epoch of the driver; a lower one than seen before for the session is refused. */
    epoch: z.int().nonnegative(),
    name: ToolName,
    input: z.json(),
    /** The same for each attempt at this call; the tool gets it, and so do the hosts that it asks. */
    idempotencyKey: z.string().regex(/^[\x21-\x7e]{1,190}$/),
    /** The caller wants no more than this for the call; it never gets more than the tool's own time. */
    timeoutMs: z.int().positive().max(MAX_TOOL_TIMEOUT_MS).optional(),
    /** What somebody agreed to: another module, or one with other grants, is not run (`TOOL.CHANGED`). */
    approved: z.strictObject({ moduleDigest: z.string(), grants: z.array(z.string()) }).optional(),
  }),
  reply: ToolReply,
  timeoutMs: 65_000,
});

/**
 * Where a call is whose answer is late. Every sandbox process hears it, outside of the queue group, and only one that has
 * the call, or remembers how it ended, answers: if none does, the call or its answer is lost.
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

/**
 * Published, not asked, so that every sandbox process hears it: nobody waits for this call's answer any more, because
 * its turn was cancelled. Whoever runs the call ends its cell; the others, and a message that is lost, change nothing.
 */
export const TOOL_CANCEL_SUBJECT = 'hint.sandbox.cancel';
export const ToolCancel = z.object({
  workspace: WorkspaceId,
  sessionId: z.uuid(),
  callId: z.uuid(),
  epoch: z.int().nonnegative(),
});
export type ToolCancel = z.infer<typeof ToolCancel>;

export const PluginView = z.object({
  name: z.string(),
  kind: z.enum(['tool', 'channel']),
  status: z.enum(['loaded', 'missing', 'rejected']),
  reason: z.string().nullable(),
  moduleDigest: z.string().nullable(),
  capabilities: z.array(z.string()),
  tools: z.array(z.string()),
});
export type PluginView = z.infer<typeof PluginView>;
export const listPlugins = defineRequest({
  subject: 'cmd.sandbox.plugin.list',
  request: z.strictObject({ workspace: WorkspaceId }),
  reply: z.object({ plugins: z.array(PluginView) }),
  timeoutMs: 5_000,
});
