import { z } from 'zod';
import { ToolCatalogue } from '../agent/index.js';
import { AtQuery } from '../gateway/index.js';
import { asOfReply } from '../log/as-of.js';
import {
  PluginView,
  RegisteredTool,
  RemoteToolDeclaration,
  ToolEndpoint,
  ToolName,
  removeRemoteTool,
} from '../sandbox/index.js';
import { AGENT } from './agent-examples.js';
import { defineRoute } from './http-route.js';

/** Tools of a workspace, with the plug-ins that could not be loaded. */
export const ToolPage = ToolCatalogue.extend({
  plugins: z
    .array(PluginView)
    .nullable()
    .describe('Plug-ins that are missing or rejected, with the reason; null if the sandbox did not respond.'),
  ...asOfReply,
});
export type ToolPage = z.infer<typeof ToolPage>;

const ByToolName = z.object({ name: ToolName });

/** Declaration of a tool over HTTP. Its name is in the path. */
export const HttpToolBody = z.strictObject({
  ...RemoteToolDeclaration.omit({ name: true, whenAbsent: true }).shape,
  ...ToolEndpoint.shape,
});

/** Routes of the catalogue of tools, and of tools over HTTP. */
export const TOOL_ROUTES = {
  listTools: defineRoute({
    method: 'get',
    path: '/api/v1/tools',
    access: 'plugins:read',
    tag: 'Operations',
    summary: 'List tools',
    description:
      'Returns the native tools and those of plug-ins: schema, module, capabilities, limits, the agents that have each ' +
      'with their approval rules, and its calls of the 24 hours before. Agents and calls are as of `at`. Descriptions, ' +
      'modules, limits and approval rules are those of the running processes, which are no facts. It runs no tool.',
    query: AtQuery,
    reply: { schema: ToolPage },
    example: {
      reply: {
        tools: [
          {
            ...{ name: 'calculator', description: 'Calculates an expression.', source: 'plugin' },
            inputSchema: {
              ...{ type: 'object', required: ['expression'] },
              properties: { expression: { type: 'string' } },
            },
            ...{ moduleDigest: 'a'.repeat(64), capabilities: [], hosts: [], isIdempotent: true },
            ...{ timeoutMs: 5_000, memoryMb: 16, maxOutputBytes: 1_048_576, retry: null },
            agentCount: 1,
            agents: [
              {
                ...{ id: AGENT.id, name: AGENT.name },
                approval: { ask: 'always', answerBy: 'operator', expiresAfterS: 86_400 },
              },
            ],
            calls: { count: 12, failures: 1, lastAt: '2026-11-22T10:14:02.118Z' },
          },
        ],
        ...{ unknown: [], hasPlugins: true, since: '2026-11-21T10:15:00.000Z', isCountPartial: false },
        plugins: [],
      },
    },
  }),
  addTool: defineRoute({
    method: 'put',
    path: '/api/v1/tools/{name}',
    access: 'plugins:write',
    tag: 'Operations',
    summary: 'Add a tool over HTTP',
    description:
      'Registers a tool that the host calls with a POST for each attempt, signed as Standard Webhooks does with a stored ' +
      'secret. The same declaration again adds no version. Needs https, and a host of the public internet unless the ' +
      'operator allows another (`tools.private_hosts`).',
    params: ByToolName,
    body: HttpToolBody,
    reply: { schema: RegisteredTool },
    example: {
      params: { name: 'invoice' },
      body: {
        ...{ description: 'Returns an invoice.', idempotent: true },
        ...{ url: 'https://tools.example.com/invoice', secret: 'invoices' },
      },
      reply: { name: 'invoice', version: 1, digest: 'a'.repeat(64) },
    },
    problems: {
      403: '`TOOL.ENDPOINT_REFUSED`: the address is not allowed',
      409: '`TOOL.NAME_TAKEN`: another tool has the name',
      422: '`TOOL.DECLARATION_INVALID` or `TOOL.TOO_MANY`',
    },
  }),
  removeTool: defineRoute({
    method: 'delete',
    path: '/api/v1/tools/{name}',
    access: 'plugins:write',
    tag: 'Operations',
    summary: 'Remove a remote tool',
    description:
      'Removes a tool of a program or over HTTP. `removed` is false if there was none with this name.',
    params: ByToolName,
    reply: { schema: removeRemoteTool.reply },
    example: { params: { name: 'invoice' }, reply: { removed: true } },
    problems: { 409: '`TOOL.HAS_WORKERS`: programs serve it now' },
  }),
} as const;
