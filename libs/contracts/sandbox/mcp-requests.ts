import { z } from 'zod';
import { WorkspaceId } from '../log/stored-event.js';
import { defineRequest } from '../messaging/index.js';
import { McpServerName } from './mcp-events.js';

/** Maximum number of tools of an MCP server. One with more is refused. */
export const MAX_MCP_TOOLS = 512;

/** State of a pinned tool. */
export const McpToolState = z
  .enum(['pinned', 'changed', 'new'])
  .describe('A tool that is `changed` or `new` cannot be called until it is approved.');

export const McpToolView = z.object({
  tool: z.string().describe('Name at the server.'),
  name: z.string().describe('Name for agents.'),
  state: McpToolState,
  digest: z
    .string()
    .describe('SHA-256 of its newest name, description, schema and hints. An approval names it.'),
  description: z.string().describe('Newest description, of at most 4000 characters.'),
  pinned: z.string().nullable().describe('Pinned description of a changed tool; null for any other.'),
});
export type McpToolView = z.output<typeof McpToolView>;

/** An MCP server of a workspace. */
export const McpServerView = z.object({
  name: z.string(),
  origin: z.enum(['configuration', 'added']),
  transport: z.enum(['http', 'stdio']),
  url: z.string().nullable().describe('Null for a server of standard input and output.'),
  status: z
    .enum(['connected', 'idle', 'failed', 'paused'])
    .describe('As the responding process sees it. `paused`: too many failures in a row.'),
  problem: z.string().nullable().describe('Why it failed or is paused.'),
  protocol: z.string().nullable().describe('Negotiated version of the protocol, once connected.'),
  features: z.array(z.string()).describe('`resources` and `prompts`, which are reachable as tools.'),
  tools: z.array(McpToolView),
  addedBy: z.string().nullable(),
  addedAt: z.iso.datetime().nullable(),
});
export type McpServerView = z.output<typeof McpServerView>;

const Caller = z.string().min(1).max(200);
const named = { workspace: WorkspaceId, server: McpServerName };

/** Lists the MCP servers of a workspace, those of the configuration first. */
export const listMcpServers = defineRequest({
  subject: 'cmd.sandbox.mcp.list',
  request: z.strictObject({ workspace: WorkspaceId }),
  reply: z.object({ servers: z.array(McpServerView) }),
  timeoutMs: 10_000,
});

/**
 * Connects to a server, and pins its tools. Errors: `MCP.EXISTS`, `MCP.CONFIGURED`, `MCP.LIMIT`,
 * `MCP.ADDRESS_REFUSED`, `MCP.UNREACHABLE`, `MCP.REFUSED`.
 */
export const addMcpServer = defineRequest({
  subject: 'cmd.sandbox.mcp.add',
  request: z.strictObject({ ...named, url: z.string().min(1).max(2_048), caller: Caller }),
  reply: McpServerView,
  timeoutMs: 30_000,
});

/** Pins changed descriptions. Errors: `MCP.NOT_FOUND`, `MCP.CHANGED_AGAIN`. */
export const approveMcpTools = defineRequest({
  subject: 'cmd.sandbox.mcp.approve',
  request: z.strictObject({
    ...named,
    tools: z
      .array(z.strictObject({ tool: z.string().min(1).max(200), digest: z.string().regex(/^[0-9a-f]{64}$/) }))
      .min(1)
      .max(MAX_MCP_TOOLS),
    caller: Caller,
  }),
  reply: McpServerView,
  timeoutMs: 15_000,
});

/** Removes an added server. Errors: `MCP.CONFIGURED`. */
export const removeMcpServer = defineRequest({
  subject: 'cmd.sandbox.mcp.remove',
  request: z.strictObject({ ...named, caller: Caller }),
  reply: z.object({ removed: z.boolean() }),
  timeoutMs: 15_000,
});
