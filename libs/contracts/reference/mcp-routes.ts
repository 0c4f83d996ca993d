import { z } from 'zod';
import {
  MAX_MCP_TOOLS,
  McpServerName,
  McpServerView,
  listMcpServers,
  removeMcpServer,
} from '../sandbox/index.js';
import { defineRoute } from './http-route.js';

const DIGEST = 'a'.repeat(64);
const TOOL = {
  ...{ tool: 'search', name: 'mcp__docs__search', state: 'changed', digest: DIGEST },
  ...{ description: 'Searches all documents.', pinned: 'Searches the documents.' },
} as const;
const SERVER = {
  ...{ name: 'docs', origin: 'added', transport: 'http', url: 'https://mcp.example.com/mcp' },
  ...{ status: 'connected', problem: null, protocol: '2025-11-25', features: ['resources'] },
  tools: [TOOL],
  ...{ addedBy: 'key/a2b3c4d5e6f7g2h3', addedAt: '2026-11-27T10:16:00.000Z' },
} as const;

const ByName = z.object({ name: McpServerName });
const CONFIGURED = '`MCP.CONFIGURED`: the configuration has a server with this name';
const params = { name: 'docs' };

/** A server as clients name it. The keys of a program are known, so that their refusal says why. */
export const McpServerBody = z.strictObject({
  url: z.string().min(1).max(2_048).optional().describe('URL of a server of streamable HTTP.'),
  command: z
    .string()
    .max(4_096)
    .optional()
    .describe('Refused: only the file of the operator names programs (`[[mcp.servers]]`).'),
  args: z.array(z.string().max(4_096)).max(100).optional().describe('Refused, as `command`.'),
});

/** Routes of `/api/v1/mcp-servers`. */
export const MCP_ROUTES = {
  listMcpServers: defineRoute({
    method: 'get',
    path: '/api/v1/mcp-servers',
    tag: 'Operations',
    summary: 'List MCP servers',
    description:
      'Returns the MCP servers of the workspace with the descriptions of their tools. A tool that is `changed` or `new` ' +
      'since it was pinned is not called until it is approved.',
    access: 'plugins:read',
    reply: { schema: listMcpServers.reply },
    example: { reply: { servers: [SERVER] } },
  }),
  addMcpServer: defineRoute({
    method: 'put',
    path: '/api/v1/mcp-servers/{name}',
    tag: 'Operations',
    summary: 'Add an MCP server',
    description:
      'Connects to a server by its URL, lists its tools and pins their descriptions. Agents may have them as ' +
      '`mcp__<server>__<tool>`. A repeat with the same URL reads the list again. Needs https, and a host of the public ' +
      'internet unless the operator allows another (`mcp.private_hosts`).',
    access: 'plugins:write',
    params: ByName,
    body: McpServerBody,
    reply: { schema: McpServerView },
    example: { params, body: { url: SERVER.url }, reply: SERVER },
    problems: {
      403: '`MCP.ADDRESS_REFUSED`, or `MCP.STDIO_FORBIDDEN`: only the file of the operator names programs',
      409: `\`MCP.EXISTS\`: a server with this name has another URL, or ${CONFIGURED}`,
      422: '`MCP.UNREACHABLE`, `MCP.REFUSED` or `MCP.LIMIT`',
    },
  }),
  approveMcpTools: defineRoute({
    method: 'post',
    path: '/api/v1/mcp-servers/{name}/approvals',
    tag: 'Operations',
    summary: 'Approve changed tools of an MCP server',
    description:
      'Pins the new descriptions of tools that are `changed` or `new`. Each is named with the digest that was read, so ' +
      'that nothing else is approved.',
    access: 'operations:write',
    params: ByName,
    body: z.strictObject({
      tools: z
        .array(
          z.strictObject({ tool: z.string().min(1).max(200), digest: z.string().regex(/^[0-9a-f]{64}$/) }),
        )
        .min(1)
        .max(MAX_MCP_TOOLS),
    }),
    reply: { schema: McpServerView },
    example: { params, body: { tools: [{ tool: 'search', digest: DIGEST }] }, reply: SERVER },
    problems: {
      404: '`MCP.NOT_FOUND`: the workspace has no server with this name',
      422: '`MCP.CHANGED_AGAIN`: a tool has no change with this digest',
    },
  }),
  removeMcpServer: defineRoute({
    method: 'delete',
    path: '/api/v1/mcp-servers/{name}',
    tag: 'Operations',
    summary: 'Remove an MCP server',
    description: 'Removes an added server with its pins. `removed` is false if there was none.',
    access: 'plugins:write',
    params: ByName,
    reply: { schema: removeMcpServer.reply },
    example: { params, reply: { removed: true } },
    problems: { 409: CONFIGURED },
  }),
} as const;
