import { z } from 'zod';
import { SecretName } from './secret-name.js';
import { WorkspaceId } from '../log/index.js';
import { ProcessId, defineRequest } from '../messaging/index.js';
import { MAX_RESULT_BYTES } from './result-limits.js';
import { ToolName } from './tool-name.js';
import { MAX_TOOL_TIMEOUT_MS, MIN_TOOL_TIMEOUT_MS, ToolRetry } from './tool-policy.js';

/** Maximum number of tools that one program serves. */
export const MAX_TOOLS_OF_WORKER = 128;
/** Maximum size of the declarations that one program sends, bytes of JSON. */
export const MAX_DECLARATIONS_BYTES = 512 * 1024;
/** Maximum number of calls that a program may take at one time. */
export const MAX_WORKER_CONCURRENCY = 1_000;
const DEFAULT_TIMEOUT_MS = 30_000;

const isObjectSchema = (schema: Readonly<Record<string, unknown>>): boolean => schema['type'] === 'object';

/** Tool of a program outside, as the program declares it. */
export const RemoteToolDeclaration = z.strictObject({
  name: ToolName,
  description: z.string().min(1).max(4_000),
  inputSchema: z
    .record(z.string(), z.json())
    .refine(isObjectSchema, 'must be a JSON Schema of type "object"')
    .default({ type: 'object' })
    .describe('JSON Schema of the input, of type `object`.'),
  idempotent: z
    .boolean()
    .default(false)
    .describe('True if a call may be made again whose outcome is lost. Default: false.'),
  timeoutMs: z
    .int()
    .min(MIN_TOOL_TIMEOUT_MS)
    .max(MAX_TOOL_TIMEOUT_MS)
    .default(DEFAULT_TIMEOUT_MS)
    .describe('Timeout of one try, ms.'),
  retry: ToolRetry.optional().describe('Retry policy; only of an idempotent tool.'),
  whenAbsent: z
    .union([z.literal('unavailable'), z.strictObject({ waitMs: z.int().min(1).max(MAX_TOOL_TIMEOUT_MS) })])
    .default('unavailable')
    .describe('Call without a worker: it fails at once, or waits this long for one.'),
});
export type RemoteToolDeclaration = z.output<typeof RemoteToolDeclaration>;

/** Where the host sends the calls of a tool, one signed POST for each attempt. */
export const ToolEndpoint = z.strictObject({
  url: z.string().min(1).max(2_048).describe('URL that takes calls, of https.'),
  secret: SecretName.describe('Name of the stored secret that signs them.'),
});
export type ToolEndpoint = z.output<typeof ToolEndpoint>;

/** Declaration of a tool with its endpoint, if it has one. */
export type RegisteredDeclaration = RemoteToolDeclaration & { readonly endpoint?: ToolEndpoint | undefined };

/** Version of a tool that a program serves. */
export const RegisteredTool = z.object({
  name: ToolName,
  version: z.int().positive(),
  digest: z.string().max(64),
});
export type RegisteredTool = z.infer<typeof RegisteredTool>;

/** Tool of a program that is not registered. */
export const RefusedTool = z.object({ name: z.string(), code: z.string(), message: z.string() });

/**
 * Registers the tools that a program serves. The same declaration again adds no fact; another one
 * is the next version of the tool.
 */
export const registerRemoteTools = defineRequest({
  subject: 'cmd.sandbox.remote.register',
  request: z.strictObject({
    workspace: WorkspaceId,
    caller: z.string().max(200),
    tools: z.array(RemoteToolDeclaration).min(1).max(MAX_TOOLS_OF_WORKER),
  }),
  reply: z.object({ tools: z.array(RegisteredTool), refused: z.array(RefusedTool) }),
  timeoutMs: 10_000,
});

/**
 * Registers a tool that is called over HTTP. The same declaration again adds no fact. Errors:
 * `TOOL.NAME_TAKEN`, `TOOL.DECLARATION_INVALID`, `TOOL.TOO_MANY`, `TOOL.ENDPOINT_REFUSED`.
 */
export const addHttpTool = defineRequest({
  subject: 'cmd.sandbox.remote.add',
  request: z.strictObject({
    workspace: WorkspaceId,
    caller: z.string().max(200),
    tool: RemoteToolDeclaration,
    endpoint: ToolEndpoint,
  }),
  reply: RegisteredTool,
  timeoutMs: 10_000,
});

/** Removes a tool that no program serves. */
export const removeRemoteTool = defineRequest({
  subject: 'cmd.sandbox.remote.remove',
  request: z.strictObject({ workspace: WorkspaceId, caller: z.string().max(200), name: ToolName }),
  reply: z.object({ removed: z.boolean() }),
  timeoutMs: 5_000,
});

/**
 * End of one attempt of a call at a gateway. `held`: the gateway holds the result, for
 * `readRemoteResult`. `not_sent`: no program got it. `lost`: the program went away that got it, and
 * may have acted.
 */
export const RemoteCallEnd = z.discriminatedUnion('end', [
  z.object({ end: z.literal('result'), content: z.string(), isError: z.boolean() }),
  z.object({
    end: z.literal('held'),
    digest: z.string(),
    size: z.int().positive().max(MAX_RESULT_BYTES),
    isError: z.boolean(),
  }),
  z.object({ end: z.literal('too_large'), bytes: z.int() }),
  z.object({ end: z.literal('not_sent'), reason: z.enum(['absent', 'busy']) }),
  z.object({ end: z.enum(['lost', 'timeout', 'cancelled']) }),
]);
export type RemoteCallEnd = z.infer<typeof RemoteCallEnd>;

/** Runs one attempt of a call on a program that is connected to this gateway. */
export const runRemoteCall = defineRequest({
  subject: 'cmd.gateway.tool.run',
  request: z.strictObject({
    workspace: WorkspaceId,
    sessionId: z.uuid(),
    callId: z.uuid(),
    /** Id of this attempt. A result of another attempt of the call is dropped. */
    attemptId: z.uuid(),
    /** Epoch of the lease of the session's driver. */
    epoch: z.int().nonnegative(),
    name: ToolName,
    digest: z.string().max(64),
    /** JSON of the input. */
    input: z.string(),
    idempotencyKey: z.string().max(190),
    agentId: z.string().max(200).optional(),
    timeoutMs: z.int().positive().max(MAX_TOOL_TIMEOUT_MS),
  }),
  reply: RemoteCallEnd,
  timeoutMs: MAX_TOOL_TIMEOUT_MS + 2_000,
  toProcess: true,
});

/** Reads a part of the result of an attempt, from the gateway that holds it. */
export const readRemoteResult = defineRequest({
  subject: 'cmd.gateway.tool.result',
  request: z.strictObject({ attemptId: z.uuid(), offset: z.int().nonnegative() }),
  /** At most `RESULT_PART_BYTES` bytes, in base64. */
  reply: z.object({ data: z.base64() }),
  timeoutMs: 5_000,
  toProcess: true,
});
/** Tells the gateway that holds the result of an attempt that its caller has it. */
export const releaseRemoteResult = defineRequest({
  subject: 'cmd.gateway.tool.release',
  request: z.strictObject({ attemptId: z.uuid() }),
  reply: z.object({}),
  timeoutMs: 1_000,
  toProcess: true,
});

/** Programs of one gateway that serve a version of a tool. */
export const ToolWorkers = z.object({
  name: ToolName,
  digest: z.string().max(64),
  workers: z.int().positive(),
});
export type ToolWorkers = z.infer<typeof ToolWorkers>;

/**
 * Subject on which a gateway tells every sandbox process of its programs: each change of a
 * workspace, and its revision at an interval. A process that lacks a revision asks for
 * all of them. A gateway that is silent is gone, with the calls of its programs.
 */
export const TOOL_WORKERS_SUBJECT = 'hint.sandbox.tool-workers';
/** Interval of the message of a gateway that has programs, ms. */
export const TOOL_WORKERS_BEAT_MS = 500;
export const ToolWorkersHint = z.object({
  gateway: ProcessId,
  /** Number of the change, from 1; 0 if there was none. */
  revision: z.int().nonnegative(),
  /** Tools of one workspace that changed by this revision. */
  change: z.object({ workspace: WorkspaceId, tools: z.array(ToolWorkers) }).optional(),
  /** Tools of all workspaces up to this revision, as an answer to `ToolWorkersAsk`. */
  all: z.array(z.object({ workspace: WorkspaceId, tools: z.array(ToolWorkers) })).optional(),
  /** True if the gateway stops: it takes no further call. */
  isStopping: z.boolean().optional(),
});
export type ToolWorkersHint = z.infer<typeof ToolWorkersHint>;

/** Subject on which a sandbox process asks the gateways for their programs. */
export const TOOL_WORKERS_ASK_SUBJECT = 'hint.gateway.tool-workers';

/** Subject that cancels an attempt of a call at whichever gateway runs it. */
export const REMOTE_CANCEL_SUBJECT = 'hint.gateway.tool-cancel';
export const RemoteCancel = z.object({ attemptId: z.uuid() });
