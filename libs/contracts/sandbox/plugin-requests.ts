import { z } from 'zod';
import { WorkspaceId } from '../log/stored-event.js';
import { defineRequest } from '../messaging/index.js';

/** Maximum size of a module that is added at run time: one message to the sandbox service. */
export const MAX_ADDED_MODULE_BYTES = 5 * 1024 * 1024;
export const MAX_ADDED_MEMORY_MB = 64;
export const MAX_ADDED_TIMEOUT_MS = 30_000;

export const PluginName = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be 1 to 64 letters, digits, dashes or underscores')
  .describe('Name of the plug-in and of its tool.');

const Caller = z.string().min(1).max(200);
const named = { workspace: WorkspaceId, name: PluginName };

/** One version of a plug-in that a workspace added. */
export const PluginVersion = z.object({
  version: z.int(),
  moduleDigest: z.string(),
  bytes: z.int(),
  capabilities: z.array(z.string()),
  timeoutMs: z.int(),
  memoryMb: z.int(),
  addedBy: z.string(),
  addedAt: z.iso.datetime(),
});
export type PluginVersion = z.output<typeof PluginVersion>;

/** A plug-in of the running processes. */
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

/** A plug-in of a workspace, as the API lists it. */
export const KnownPlugin = PluginView.extend({
  origin: z.enum(['configuration', 'added']).describe('`added`: by the workspace, at run time.'),
  allowed: z.boolean().describe('False if the workspace denied it: no agent has its tool.'),
  version: z.int().nullable().describe('Null for one of the configuration.'),
  addedBy: z.string().nullable(),
  addedAt: z.iso.datetime().nullable(),
});
export type KnownPlugin = z.output<typeof KnownPlugin>;

/** Lists the plug-ins of a workspace, those of the configuration first. */
export const listPlugins = defineRequest({
  subject: 'cmd.sandbox.plugin.list',
  request: z.strictObject({ workspace: WorkspaceId }),
  reply: z.object({ plugins: z.array(KnownPlugin) }),
  timeoutMs: 15_000,
});

/**
 * Adds a plug-in, or a version of one. The same module with the same grants and limits adds
 * nothing. Errors: `PLUGIN.REJECTED`, `PLUGIN.CONFIGURED`, `PLUGIN.NAME_TAKEN`, `PLUGIN.LIMIT`.
 */
export const addPlugin = defineRequest({
  subject: 'cmd.sandbox.plugin.add',
  request: z.strictObject({
    ...named,
    /** The module, base64. */
    module: z.string().max(Math.ceil(MAX_ADDED_MODULE_BYTES / 3) * 4),
    capabilities: z.array(z.string().max(300)).max(50),
    timeoutMs: z.int().min(10).max(MAX_ADDED_TIMEOUT_MS),
    memoryMb: z.int().min(1).max(MAX_ADDED_MEMORY_MB),
    caller: Caller,
  }),
  reply: KnownPlugin,
  timeoutMs: 30_000,
});

/** Lists the versions of an added plug-in, oldest first. Errors: `PLUGIN.NOT_FOUND`. */
export const listPluginVersions = defineRequest({
  subject: 'cmd.sandbox.plugin.versions',
  request: z.strictObject(named),
  reply: z.object({ versions: z.array(PluginVersion) }),
  timeoutMs: 5_000,
});

/** Removes an added plug-in and its values. Errors: `PLUGIN.CONFIGURED`. */
export const removePlugin = defineRequest({
  subject: 'cmd.sandbox.plugin.remove',
  request: z.strictObject({ ...named, caller: Caller }),
  reply: z.object({ removed: z.boolean() }),
  timeoutMs: 15_000,
});

/** Allows or denies a plug-in in a workspace. Errors: `PLUGIN.NOT_FOUND`. */
export const permitPlugin = defineRequest({
  subject: 'cmd.sandbox.plugin.permit',
  request: z.strictObject({ ...named, allowed: z.boolean(), caller: Caller }),
  reply: KnownPlugin,
  timeoutMs: 15_000,
});

/** Calls a plug-in's tool once, outside of any session. Errors: `PLUGIN.NOT_FOUND`. */
export const callPlugin = defineRequest({
  subject: 'cmd.sandbox.plugin.call',
  request: z.strictObject({ ...named, input: z.json(), caller: Caller }),
  reply: z.object({
    content: z.string(),
    isError: z.boolean(),
    /** Code of a failure of the call, such as `TOOL.TIMEOUT`; null if the tool ran to its end. */
    code: z.string().nullable(),
    moduleDigest: z.string(),
    durationMs: z.number(),
  }),
  timeoutMs: 65_000,
});
