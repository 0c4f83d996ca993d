import { z } from 'zod';
import { event } from '../log/stored-event.js';

/** Name of an MCP server in its workspace. It is a part of the names of its tools. */
export const McpServerName = z
  .string()
  .regex(
    /^[a-z0-9](?:[a-z0-9-]{0,22}[a-z0-9])?$/,
    'must be 1 to 24 lower-case letters, digits or dashes, and begin and end with a letter or digit',
  )
  .describe('Name of the server. Its tools are named `mcp__<server>__<tool>`.');

/** Features of an MCP server besides tools. */
export const McpFeature = z.enum(['resources', 'prompts']);
export type McpFeature = z.infer<typeof McpFeature>;

const Digest = z.string().regex(/^[0-9a-f]{64}$/);

/** A tool as its server describes it. `digest` covers its name, description, schema and hints. */
export const McpTool = z.object({
  /** Name at the server, which may be one that no agent can use. */
  tool: z.string().min(1).max(200),
  digest: Digest,
  description: z.string().max(4_000),
  inputSchema: z.record(z.string(), z.json()),
  /** Claims of the server, which count only if the operator trusts them. */
  hints: z.object({ isReadOnly: z.boolean(), isIdempotent: z.boolean() }),
});
export type McpTool = z.infer<typeof McpTool>;

const named = { server: z.string().max(64), at: z.iso.datetime() };
const actor = z.string().min(1).max(200);
const features = z.array(z.string().max(64));

/** Agents of the workspace may have the tools of the server from here on. */
export const McpServerAdded = event('McpServerAdded', {
  ...named,
  /** It holds no credentials. */
  url: z.string().max(2_048),
  actor,
});
/** Tools as the server first described them. Several events if they are many. */
export const McpToolsPinned = event('McpToolsPinned', { ...named, tools: z.array(McpTool), features });
/**
 * The server describes tools otherwise than they were pinned, or has new ones. They cannot be
 * called until they are approved, unless their description is the pinned one again.
 */
export const McpToolsChanged = event('McpToolsChanged', {
  ...named,
  tools: z.array(McpTool),
  /** Tools that the server has no more. */
  removed: z.array(z.string().max(200)),
  features,
});
/** The changed descriptions with these digests are pinned now. */
export const McpChangeApproved = event('McpChangeApproved', {
  ...named,
  tools: z.array(z.object({ tool: z.string().max(200), digest: Digest })),
  actor,
});
/** Its tools are gone, with their pins. */
export const McpServerRemoved = event('McpServerRemoved', { ...named, actor });

/** Every event of the stream of a workspace's MCP servers. */
export const McpEvent = z.discriminatedUnion('type', [
  McpServerAdded,
  McpToolsPinned,
  McpToolsChanged,
  McpChangeApproved,
  McpServerRemoved,
]);
export type McpEvent = z.infer<typeof McpEvent>;

/** Stream of all MCP servers of a workspace. */
export const MCP_STREAM = 'plugin-mcp';
