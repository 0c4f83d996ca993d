import { z } from 'zod';
import {
  KnownPlugin,
  MAX_ADDED_MEMORY_MB,
  MAX_ADDED_TIMEOUT_MS,
  PluginName,
  callPlugin,
  listPluginVersions,
  removePlugin,
} from '../sandbox/index.js';
import { defineRoute } from './http-route.js';

const DIGEST = 'a'.repeat(64);
const PLUGIN = {
  ...{ name: 'weather', kind: 'tool', tools: ['weather'], origin: 'added' },
  ...{ status: 'loaded', reason: null, moduleDigest: DIGEST },
  ...{ capabilities: ['http:api.example.com/v1'], allowed: true, version: 2 },
  ...{ addedBy: 'key/a2b3c4d5e6f7g2h3', addedAt: '2026-11-28T10:16:00.000Z' },
} as const;
const params = { name: 'weather' };
const ByName = z.object({ name: PluginName });
const CONFIGURED = '`PLUGIN.CONFIGURED`: the configuration has a plug-in with this name';
const NOT_FOUND = { 404: '`PLUGIN.NOT_FOUND`: the workspace has no plug-in with this name' };

/** Number in a query, from 1. */
const count = (max: number, text: string) =>
  z.coerce.number().int().min(1).max(max).optional().describe(text);

/** Options of a module whose bytes are the body. */
export const PluginAddQuery = z.strictObject({
  name: PluginName,
  capabilities: z
    .string()
    .max(4_096)
    .optional()
    .describe('Capabilities, separated by commas. Default: none.'),
  timeoutMs: count(MAX_ADDED_TIMEOUT_MS, 'Maximum for one attempt of a call, ms. Default: 5000.'),
  memoryMb: count(MAX_ADDED_MEMORY_MB, "Maximum of the module's own memory, MiB. Default: 16."),
});

/** Routes of `/api/v1/plugins` that concern one plug-in. */
export const PLUGIN_ROUTES = {
  addPlugin: defineRoute({
    method: 'post',
    path: '/api/v1/plugins',
    access: 'plugins:write',
    tag: 'Operations',
    summary: 'Add a plug-in',
    description:
      'Adds a WebAssembly module of at most 5 MiB, or a version of a plug-in that the workspace added. The body of ' +
      '`application/octet-stream` is the module, and its options are in the query. The module is validated and ' +
      'describes itself before it is added. The same module with the same options adds no version. Agents have its ' +
      'tool once they name it. No restart is needed, and calls in progress end with their version.',
    query: PluginAddQuery,
    upload: true,
    reply: { schema: KnownPlugin },
    example: { query: { name: 'weather', capabilities: 'http:api.example.com/v1,clock' }, reply: PLUGIN },
    problems: {
      409: `\`PLUGIN.NAME_TAKEN\`: a tool has this name, or ${CONFIGURED}`,
      422: '`PLUGIN.REJECTED`: the module or a capability is refused, with the reason, or `PLUGIN.LIMIT`',
    },
  }),
  readPlugin: defineRoute({
    method: 'get',
    path: '/api/v1/plugins/{name}',
    access: 'plugins:read',
    tag: 'Operations',
    summary: 'Get a plug-in',
    description: 'Returns a plug-in of the workspace.',
    params: ByName,
    reply: { schema: KnownPlugin },
    example: { params, reply: PLUGIN },
    problems: NOT_FOUND,
  }),
  listPluginVersions: defineRoute({
    method: 'get',
    path: '/api/v1/plugins/{name}/versions',
    access: 'plugins:read',
    tag: 'Operations',
    summary: 'List the versions of a plug-in',
    description:
      'Returns the newest 50 versions of a plug-in that the workspace added, oldest first. The last one is in use, ' +
      'unless the plug-in was removed.',
    params: ByName,
    reply: { schema: listPluginVersions.reply },
    example: {
      params,
      reply: {
        versions: [
          {
            ...{
              version: 1,
              moduleDigest: DIGEST,
              bytes: 2_048,
              capabilities: [],
              timeoutMs: 5_000,
              memoryMb: 16,
            },
            ...{ addedBy: PLUGIN.addedBy, addedAt: PLUGIN.addedAt },
          },
        ],
      },
    },
    problems: NOT_FOUND,
  }),
  permitPlugin: defineRoute({
    method: 'put',
    path: '/api/v1/plugins/{name}/permission',
    access: 'plugins:write',
    tag: 'Operations',
    summary: 'Allow or deny a plug-in',
    description:
      'Denies a plug-in to all agents of the workspace, also one of the configuration, or allows it again. A denied ' +
      'plug-in is not listed as a tool and cannot be called.',
    params: ByName,
    body: z.strictObject({ allowed: z.boolean() }),
    reply: { schema: KnownPlugin },
    example: { params, body: { allowed: false }, reply: { ...PLUGIN, allowed: false } },
    problems: NOT_FOUND,
  }),
  callPlugin: defineRoute({
    method: 'post',
    path: '/api/v1/plugins/{name}/call',
    access: 'plugins:write',
    tag: 'Operations',
    summary: 'Call a plug-in',
    description:
      'Calls the tool of a plug-in once, outside of any session, with its capabilities. The call is no fact. A failure ' +
      'of the tool is a reply, with its code.',
    params: ByName,
    body: z.strictObject({ input: z.json() }),
    reply: { schema: callPlugin.reply },
    example: {
      params,
      body: { input: { city: 'Bern' } },
      reply: { content: '7 degrees', isError: false, code: null, moduleDigest: DIGEST, durationMs: 12.5 },
    },
    problems: NOT_FOUND,
  }),
  removePlugin: defineRoute({
    method: 'delete',
    path: '/api/v1/plugins/{name}',
    access: 'plugins:write',
    tag: 'Operations',
    summary: 'Remove a plug-in',
    description:
      'Removes a plug-in that the workspace added, with the values of its stores. `removed` is false if there was none.',
    params: ByName,
    reply: { schema: removePlugin.reply },
    example: { params, reply: { removed: true } },
    problems: { 409: CONFIGURED },
  }),
} as const;
