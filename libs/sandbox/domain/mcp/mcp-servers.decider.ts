import type { McpEvent, McpFeature, McpTool } from '@antiphon/contracts/sandbox';
import { assertNever, conflict, notFound, rejected } from '@antiphon/kernel';
import type { Decider } from '@antiphon/kernel';

const schemaVersion = 1;

/** Maximum number of MCP servers that a workspace adds. */
export const MAX_MCP_SERVERS = 50;
/** Size of the tools of one event as JSON, UTF-16 units. Events of the log are bounded. */
const MAX_EVENT_CHARS = 200_000;

/** An MCP server of a workspace, and the descriptions of its tools. */
export interface McpServer {
  readonly name: string;
  /** Null for a server of the configuration. */
  readonly url: string | null;
  readonly addedBy: string | null;
  readonly addedAt: string | null;
  readonly features: readonly string[];
  /** Tools as they were pinned or approved, by their name at the server. */
  readonly pinned: ReadonlyMap<string, McpTool>;
  /** Tools that are changed or new, and await an approval. */
  readonly pending: ReadonlyMap<string, McpTool>;
}

/** MCP servers of a workspace by name, oldest first. */
export type McpServers = ReadonlyMap<string, McpServer>;

interface Command<T extends string> {
  readonly type: T;
  readonly server: string;
  readonly now: string;
}
/** Tools and features that a server has now. */
interface Listing {
  readonly tools: readonly McpTool[];
  readonly features: readonly McpFeature[];
}
export interface AddMcpServer extends Command<'Add'>, Listing {
  readonly url: string;
  readonly actor: string;
}
export interface ObserveMcpServer extends Command<'Observe'>, Listing {}
export interface ApproveMcpTools extends Command<'Approve'> {
  readonly tools: readonly { readonly tool: string; readonly digest: string }[];
  readonly actor: string;
}
export interface RemoveMcpServer extends Command<'Remove'> {
  readonly actor: string;
}
export type McpCommand = AddMcpServer | ObserveMcpServer | ApproveMcpTools | RemoveMcpServer;

const inChunks = (tools: readonly McpTool[]): McpTool[][] => {
  const chunks: McpTool[][] = [[]];
  let chars = 0;
  for (const tool of tools) {
    const size = JSON.stringify(tool).length;
    if (chars > 0 && chars + size > MAX_EVENT_CHARS) {
      chunks.push([]);
      chars = 0;
    }
    chunks.at(-1)?.push(tool);
    chars += size;
  }
  return chunks;
};

const pin = ({ server, now: at, tools, features }: Command<string> & Listing): McpEvent[] =>
  inChunks(tools).map((chunk) => ({
    ...{ type: 'McpToolsPinned', schemaVersion },
    data: { server, at, tools: chunk, features: [...features] },
  }));

const add = (command: AddMcpServer, servers: McpServers): McpEvent[] => {
  const { server, url, actor, now: at } = command;
  const known = servers.get(server);
  if (known?.url === url) return observe(command, servers);
  // Without a URL it was a server of the configuration, which has none of this name now.
  if (known && known.url !== null)
    throw conflict(
      'MCP.EXISTS',
      `the workspace has an MCP server "${server}". What to do: choose another name, or remove it first`,
    );
  if (servers.size >= MAX_MCP_SERVERS)
    throw rejected('MCP.LIMIT', `the workspace has ${MAX_MCP_SERVERS} MCP servers. What to do: remove one`);
  return [{ type: 'McpServerAdded', schemaVersion, data: { server, url, actor, at } }, ...pin(command)];
};

const isSame = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((one) => b.includes(one));

const observe = (command: Command<string> & Listing, servers: McpServers): McpEvent[] => {
  const { server, now: at, tools, features } = command;
  const known = servers.get(server);
  if (!known) return pin(command);
  const changed = tools.filter(
    ({ tool, digest }) => (known.pending.get(tool) ?? known.pinned.get(tool))?.digest !== digest,
  );
  const listed = new Set(tools.map(({ tool }) => tool));
  const removed = [...new Set([...known.pinned.keys(), ...known.pending.keys()])].filter(
    (tool) => !listed.has(tool),
  );
  if (changed.length === 0 && removed.length === 0 && isSame(features, known.features)) return [];
  return inChunks(changed).map((chunk, index) => ({
    ...{ type: 'McpToolsChanged', schemaVersion },
    data: { server, at, tools: chunk, removed: index === 0 ? removed : [], features: [...features] },
  }));
};

const requireServer = (servers: McpServers, server: string): McpServer => {
  const known = servers.get(server);
  if (known) return known;
  throw notFound('MCP.NOT_FOUND', `the workspace has no MCP server "${server}"`);
};

const approve = ({ server, tools, actor, now: at }: ApproveMcpTools, servers: McpServers): McpEvent[] => {
  const known = requireServer(servers, server);
  const open = tools.filter(({ tool, digest }) => known.pinned.get(tool)?.digest !== digest);
  for (const { tool, digest } of open)
    if (known.pending.get(tool)?.digest !== digest)
      throw rejected(
        'MCP.CHANGED_AGAIN',
        `"${tool}" has no change with this digest. What to do: read the description again`,
      );
  if (open.length === 0) return [];
  return [{ type: 'McpChangeApproved', schemaVersion, data: { server, tools: open, actor, at } }];
};

const decide = (command: McpCommand, servers: McpServers): McpEvent[] => {
  switch (command.type) {
    case 'Add':
      return add(command, servers);
    case 'Observe':
      return observe(command, servers);
    case 'Approve':
      return approve(command, servers);
    case 'Remove': {
      const { server, actor, now: at } = command;
      if (!servers.has(server)) return [];
      return [{ type: 'McpServerRemoved', schemaVersion, data: { server, actor, at } }];
    }
    default:
      return assertNever(command);
  }
};

const byTool = (tools: readonly McpTool[]): [string, McpTool][] => tools.map((tool) => [tool.tool, tool]);

const withChange = (
  known: McpServer,
  tools: readonly McpTool[],
  removed: readonly string[],
): Pick<McpServer, 'pinned' | 'pending'> => {
  const [pinned, pending] = [new Map(known.pinned), new Map([...known.pending, ...byTool(tools)])];
  for (const { tool, digest } of tools) if (pinned.get(tool)?.digest === digest) pending.delete(tool);
  for (const tool of removed) {
    pinned.delete(tool);
    pending.delete(tool);
  }
  return { pinned, pending };
};

const withApproval = (
  known: McpServer,
  approved: readonly { readonly tool: string; readonly digest: string }[],
): Pick<McpServer, 'pinned' | 'pending'> => {
  const [pinned, pending] = [new Map(known.pinned), new Map(known.pending)];
  for (const { tool, digest } of approved) {
    const change = pending.get(tool);
    if (change?.digest !== digest) continue;
    pinned.set(tool, change);
    pending.delete(tool);
  }
  return { pinned, pending };
};

const unknownServer = (name: string): McpServer => ({
  ...{ name, url: null, addedBy: null, addedAt: null, features: [] },
  ...{ pinned: new Map(), pending: new Map() },
});

const evolveServer = (known: McpServer, event: McpEvent): McpServer | null => {
  const { type, data } = event;
  switch (type) {
    case 'McpServerAdded':
      return { ...unknownServer(data.server), url: data.url, addedBy: data.actor, addedAt: data.at };
    case 'McpToolsPinned':
      return {
        ...{ ...known, features: data.features },
        pinned: new Map([...known.pinned, ...byTool(data.tools)]),
      };
    case 'McpToolsChanged':
      return { ...known, features: data.features, ...withChange(known, data.tools, data.removed) };
    case 'McpChangeApproved':
      return { ...known, ...withApproval(known, data.tools) };
    case 'McpServerRemoved':
      return null;
  }
};

const evolve = (servers: McpServers, event: McpEvent): McpServers => {
  const { server } = event.data;
  const next = new Map(servers);
  const after = evolveServer(servers.get(server) ?? unknownServer(server), event);
  if (after === null) next.delete(server);
  else next.set(server, after);
  return next;
};

/**
 * Decides which MCP servers a workspace has, and which descriptions of their tools are pinned.
 * Throws `MCP.EXISTS`, `MCP.LIMIT`, `MCP.NOT_FOUND` and `MCP.CHANGED_AGAIN`.
 */
export const mcpServersDecider: Decider<McpServers, McpCommand, McpEvent> = {
  initialState: () => new Map(),
  decide,
  evolve,
};
