import { z } from 'zod';
import { asOfReply, asOfRequest } from '../log/as-of.js';
import { WorkspaceId } from '../log/index.js';
import { defineRequest } from '../messaging/index.js';
import { ToolName, ToolRetry, ToolSourceKind } from '../sandbox/index.js';

/** Number of agents that a tool of the catalogue names. Its `agentCount` counts all of them. */
export const MAX_AGENTS_OF_TOOL = 100;
/** Number of agents of a workspace whose tools are looked at, the oldest. */
export const MAX_AGENTS_WITH_TOOLS = 1_000;
/** Number of the newest events of tool calls that are counted. */
export const MAX_COUNTED_EVENTS = 20_000;

const ApprovalOfTool = z.object({
  ask: z.enum(['always', 'unsafe']).describe('`unsafe`: only for a tool that is not idempotent.'),
  answerBy: z.string().describe('Least role that may answer.'),
  expiresAfterS: z.int().positive(),
});

/** An agent that has a tool, and how it may call it. */
export const AgentOfTool = z.object({
  id: z.string(),
  name: z.string(),
  approval: ApprovalOfTool.nullable().describe('Approval that each of its calls needs; null for none.'),
  timeoutMs: z.int().positive().optional().describe('Its limit of one try, if it is below that of the tool.'),
  retry: ToolRetry.optional().describe('Retry policy of its calls.'),
});

/** Calls of a tool in the 24 hours before now, or before the position. */
export const CallsOfTool = z.object({
  count: z.int().nonnegative(),
  failures: z.int().nonnegative().describe('Calls without a result, and those whose tool reports an error.'),
  lastAt: z.iso.datetime().nullable().describe('Time of the newest call; null for none.'),
});

/** A tool that agents may have. */
export const ToolView = z.object({
  name: ToolName,
  description: z.string(),
  inputSchema: z.record(z.string(), z.json()).describe('JSON Schema of the input.'),
  source: z
    .enum(['native', ...ToolSourceKind.options])
    .describe(
      '`native`: it runs in the agent process; `plugin`: in a cell of the sandbox; `remote`: in a program that serves it; `mcp`: on an MCP server.',
    ),
  moduleDigest: z.string().nullable().describe('SHA-256 of the module of a plug-in; null for a native tool.'),
  workers: z
    .int()
    .nullable()
    .default(null)
    .describe('Number of programs that serve a remote tool now; null for a tool of another source.'),
  capabilities: z.array(z.string()).describe('Capabilities of its module, such as `http:api.example.com`.'),
  hosts: z.array(z.string()).describe('Hosts that it may reach by `http`.'),
  isIdempotent: z.boolean().describe('A tool that is not is never called again when its outcome is lost.'),
  timeoutMs: z.int().positive().nullable().describe('Limit of one try; null for none.'),
  memoryMb: z.int().positive().nullable().describe('Limit of its memory; null for a native tool.'),
  maxOutputBytes: z.int().positive().nullable().describe('Limit of its result; null for a native tool.'),
  retry: ToolRetry.nullable(),
  agentCount: z.int().nonnegative(),
  agents: z.array(AgentOfTool).describe(`The oldest ${MAX_AGENTS_OF_TOOL} agents that have it.`),
  calls: CallsOfTool.nullable().describe('Null for a caller that may not read all sessions.'),
});
export type ToolView = z.infer<typeof ToolView>;

/** The tools of a workspace, by name. */
export const ToolCatalogue = z.object({
  tools: z.array(ToolView),
  unknown: z
    .array(z.object({ name: z.string(), agents: z.array(z.string()) }))
    .describe('Tools that agents name and that do not exist. Such an agent works without them.'),
  hasPlugins: z
    .boolean()
    .describe('False if the sandbox did not respond: tools of plug-ins are missing then.'),
  since: z.iso.datetime().describe('Begin of the time in which calls are counted.'),
  isCountPartial: z
    .boolean()
    .describe(`True if there are more than ${MAX_COUNTED_EVENTS} events of calls: the newest are counted.`),
});
export type ToolCatalogue = z.infer<typeof ToolCatalogue>;

/**
 * Lists the tools that the agents of a workspace may have, native ones first. Agents and calls are
 * as of `at`; descriptions, modules and approval rules are those of the running processes.
 */
export const listAgentTools = defineRequest({
  subject: 'cmd.agent.agent.list-tools',
  request: z.strictObject({ workspace: WorkspaceId, ...asOfRequest }),
  reply: ToolCatalogue.extend(asOfReply),
  timeoutMs: 15_000,
});
