import { createHash } from 'node:crypto';
import { digestOf } from '@antiphon/event-store';
import type { JsonObject } from '@antiphon/kernel';

const MAX_NAME = 64;
const DIGEST_CHARS = 8;

/** Prefix of the tools of a server. Server names have no underscore, so that no two share one. */
export const mcpPrefix = (server: string): string => `mcp__${server}__`;

const shortDigest = (text: string): string =>
  createHash('sha256').update(text).digest('hex').slice(0, DIGEST_CHARS);

/**
 * Returns the name of a tool for agents: `mcp__<server>__<tool>`, of at most 64 letters, digits,
 * dashes and underscores. A name that has to be changed ends in a digest of the name at the server.
 */
export const mcpToolName = (server: string, tool: string): string => {
  const prefix = mcpPrefix(server);
  const clean = tool.replaceAll(/[^A-Za-z0-9_-]/g, '_');
  if (clean === tool && prefix.length + clean.length <= MAX_NAME) return prefix + clean;
  const room = MAX_NAME - prefix.length - DIGEST_CHARS - 1;
  return `${prefix}${clean.slice(0, room)}_${shortDigest(tool)}`;
};

/** Digest of a tool as its server describes it. */
export const digestOfTool = (described: {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonObject;
  readonly hints: { readonly isReadOnly: boolean; readonly isIdempotent: boolean };
}): string => digestOf(described);
