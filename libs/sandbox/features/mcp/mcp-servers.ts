import type { AntiphonConfig, McpServerConfig } from '@antiphon/config';
import { isVisibleIn } from '@antiphon/config';
import { repeatEvery } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import type { McpServer, McpServers as Folded } from '@antiphon/sandbox-domain';
import type { Environment } from '@antiphon/service-host';
import type { McpListing, McpTarget } from './mcp-connection.js';
import type { McpRegistry } from './mcp-registry.js';
import { McpSession } from './mcp-session.js';
import { toMcpTool } from './mcp-tools.js';
import type { CallPolicyOfServer } from './mcp-tools.js';

export interface McpServersDeps {
  readonly config: Pick<AntiphonConfig, 'mcp'>;
  readonly environment: Environment;
  readonly registry: McpRegistry;
  readonly logger: Logger;
  /** Working folder of programs. */
  readonly home: string;
}

/** A server of a workspace, with the descriptions of its tools and how it is reached. */
export interface KnownServer {
  readonly state: McpServer;
  readonly target: McpTarget;
  readonly policy: CallPolicyOfServer;
  readonly isConfigured: boolean;
}

/** Policy of a server that a client added: the operator has not said to believe its hints. */
const ADDED_POLICY: CallPolicyOfServer = { timeoutMs: 30_000, trustHints: false };
/** Time after which an unused connection is closed, ms. */
const IDLE_MS = 600_000;
const SWEEP_MS = 60_000;
/** Time that a list of tools waits for servers that were never reached, ms. */
const FIRST_LIST_MS = 2_500;

const noTools = (name: string): McpServer => ({
  ...{ name, url: null, addedBy: null, addedAt: null, features: [] },
  ...{ pinned: new Map(), pending: new Map() },
});

const steadyNow = (): number => performance.now();

/** Servers of the workspaces, and the connections of this process to them. */
export class McpServers {
  readonly #sessions = new Map<string, McpSession>();
  /** Servers whose first list was asked for by this process. */
  readonly #firstLists = new Map<string, Promise<void>>();
  readonly #stopping = new AbortController();

  constructor(private readonly deps: McpServersDeps) {
    void repeatEvery(() => this.#sweep(), SWEEP_MS, this.#stopping.signal);
  }

  /** Lists the servers of a workspace, those of the configuration first. */
  async list(workspace: string): Promise<readonly KnownServer[]> {
    const folded = await this.deps.registry.read(workspace);
    const configured = this.#configured(workspace);
    const names = new Set(configured.map(({ name }) => name));
    const added = [...folded.values()].filter(({ name, url }) => url !== null && !names.has(name));
    return [
      ...configured.map((server) => this.#ofConfiguration(server, folded)),
      ...added.map((state) => this.#ofWorkspace(state)),
    ];
  }

  async find(workspace: string, name: string): Promise<KnownServer | undefined> {
    const folded = await this.deps.registry.read(workspace);
    const configured = this.#configured(workspace).find((server) => server.name === name);
    if (configured) return this.#ofConfiguration(configured, folded);
    const state = folded.get(name);
    return state && state.url !== null ? this.#ofWorkspace(state) : undefined;
  }

  isConfigured(workspace: string, name: string): boolean {
    return this.#configured(workspace).some((server) => server.name === name);
  }

  /** How an added server with this URL is reached. */
  targetOf(url: string): McpTarget {
    return { transport: 'http', url, privateHosts: this.deps.config.mcp.privateHosts };
  }

  /** Returns the connection to a server. One whose definition has changed is replaced. */
  session(workspace: string, { state: { name: server }, target }: KnownServer): McpSession {
    const key = `${workspace}/${server}`;
    const known = this.#sessions.get(key);
    if (known && JSON.stringify(known.target) === JSON.stringify(target)) return known;
    void known?.close();
    const session = this.createSession(server, target, (listing) => this.observe(workspace, server, listing));
    this.#sessions.set(key, session);
    return session;
  }

  /** Returns the connection of this process to a server if there is one. */
  openSession(workspace: string, server: string): McpSession | undefined {
    return this.#sessions.get(`${workspace}/${server}`);
  }

  createSession(
    server: string,
    target: McpTarget,
    onListed: (listing: McpListing) => Promise<void>,
  ): McpSession {
    const { logger } = this.deps;
    return new McpSession({ server, target, logger, now: steadyNow, onListed });
  }

  /** Records what a server lists, if it differs from the facts. */
  async observe(workspace: string, server: string, listing: McpListing): Promise<void> {
    const { registry, logger } = this.deps;
    const { tools, features } = this.describe(server, listing);
    const { servers, isChanged } = await registry.commit(workspace, {
      type: 'Observe',
      server,
      tools,
      features,
    });
    if (!isChanged) return;
    const { pinned, pending } = servers.get(server) ?? noTools(server);
    const fields = { workspace, server, pinned: pinned.size, pending: pending.size };
    if (pending.size > 0) logger.warn(fields, 'MCP tools changed');
    else logger.info(fields, 'MCP tools pinned');
  }

  /** Returns the tools of a list that agents can have. */
  describe(server: string, { tools, features }: McpListing) {
    const described = tools.flatMap((tool) => toMcpTool(tool) ?? []);
    if (described.length < tools.length)
      this.deps.logger.warn({ server, tools: tools.length - described.length }, 'MCP tools left out');
    return { tools: [...new Map(described.map((tool) => [tool.tool, tool])).values()], features };
  }

  /** Waits a short time for the first lists of servers that have no pinned tools. */
  async pinNew(workspace: string, servers: readonly KnownServer[]): Promise<void> {
    const first = servers.flatMap((server) => {
      const { state } = server;
      if (state.pinned.size > 0 || state.pending.size > 0 || state.features.length > 0) return [];
      const key = `${workspace}/${state.name}`;
      if (this.#firstLists.has(key)) return [];
      const listing = this.session(workspace, server)
        .refresh()
        .catch((error: unknown) => {
          this.deps.logger.warn({ workspace, server: state.name, err: error }, 'MCP server unreachable');
          // A later list tries again, and waits for it.
          setTimeout(() => this.#firstLists.delete(key), IDLE_MS / 10).unref();
        });
      this.#firstLists.set(key, listing);
      return [listing];
    });
    if (first.length === 0) return;
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<void>((resolve) => (timer = setTimeout(resolve, FIRST_LIST_MS)));
    await Promise.race([Promise.all(first), timeout]);
    clearTimeout(timer);
  }

  /** Closes the connection to a server that was removed. */
  async forget(workspace: string, server: string): Promise<void> {
    const key = `${workspace}/${server}`;
    const session = this.#sessions.get(key);
    this.#sessions.delete(key);
    this.#firstLists.delete(key);
    await session?.close();
  }

  async close(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([...this.#sessions.values()].map((session) => session.close()));
    this.#sessions.clear();
  }

  async #sweep(): Promise<void> {
    for (const [key, session] of this.#sessions) {
      if (session.isBusy || steadyNow() - session.usedAt < IDLE_MS) continue;
      this.#sessions.delete(key);
      await session.close();
    }
  }

  #configured(workspace: string): readonly McpServerConfig[] {
    return this.deps.config.mcp.servers.filter((server) => isVisibleIn(server, workspace));
  }

  #ofConfiguration(server: McpServerConfig, folded: Folded): KnownServer {
    const { name, timeoutMs, trustHints } = server;
    const known = folded.get(name);
    // Pins of a server that a client had added under this name are those of another server.
    const state = known?.url === null ? known : noTools(name);
    return { state, target: this.#targetOf(server), policy: { timeoutMs, trustHints }, isConfigured: true };
  }

  #ofWorkspace(state: McpServer): KnownServer {
    return { state, target: this.targetOf(state.url ?? ''), policy: ADDED_POLICY, isConfigured: false };
  }

  #targetOf({ command, args, env, url, tokenEnv }: McpServerConfig): McpTarget {
    const { environment, home } = this.deps;
    if (url !== undefined) {
      const token = tokenEnv === undefined ? undefined : environment[tokenEnv];
      const headers = token ? { headers: { authorization: `Bearer ${token}` } } : {};
      // The operator's file allows its own hosts.
      return { transport: 'http', url, privateHosts: [new URL(url).host], ...headers };
    }
    const named = env.flatMap((name) => {
      const value = environment[name];
      return value === undefined ? [] : [[name, value] as const];
    });
    const server = { command: command ?? '', args, env: Object.fromEntries(named), cwd: home };
    return { transport: 'stdio', server };
  }
}
