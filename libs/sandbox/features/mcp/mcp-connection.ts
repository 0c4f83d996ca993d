import { MAX_MCP_TOOLS } from '@antiphon/contracts/sandbox';
import type { McpFeature } from '@antiphon/contracts/sandbox';
import { rejected } from '@antiphon/kernel';
import type { JsonObject } from '@antiphon/kernel';
import type { McpResult } from '@antiphon/sandbox-domain';
import { loadClientLibrary } from './client-library.port.js';
import type {
  Client,
  ClientLibrary,
  ListedTool,
  ListPage,
  RequestOptions,
  Transport,
} from './client-library.port.js';
import { McpHttp } from './mcp-http.js';
import type { PrivateHosts } from './mcp-http.js';
import { StdioTransport } from './stdio-transport.js';
import type { StdioServer } from './stdio-transport.js';

/** How a server is reached. */
export type McpTarget =
  | {
      readonly transport: 'http';
      readonly url: string;
      readonly privateHosts: PrivateHosts;
      readonly headers?: Readonly<Record<string, string>>;
    }
  | { readonly transport: 'stdio'; readonly server: StdioServer };

export interface McpConnectionListener {
  readonly onToolsChanged: () => void;
  /** Called once the connection cannot be used any more. */
  readonly onClosed: () => void;
  readonly onNoise: (line: string) => void;
}

/** A call of a tool. */
export interface McpToolCall {
  readonly name: string;
  readonly input: JsonObject;
  /** The tool as it was listed last. */
  readonly definition: ListedTool | undefined;
}

/** Limits of one request. */
export interface McpLimits {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

export interface McpListing {
  readonly tools: readonly ListedTool[];
  readonly features: readonly McpFeature[];
}

const CLIENT = { name: 'antiphon', version: '1' };
/** Time for the probe of the newer protocol, after which a server of standard input is older, ms. */
const PROBE_MS = 3_000;
const MAX_PAGES = 64;
const RECONNECTION = {
  initialReconnectionDelay: 500,
  maxReconnectionDelay: 10_000,
  reconnectionDelayGrowFactor: 2,
  maxRetries: 2,
};

/** Output is data for a model. Its schema is the server's, and may be built to take long. */
const acceptAny = { getValidator: () => (input: unknown) => ({ valid: true, data: input }) as never };

const optionsOf = ({ timeoutMs, signal }: McpLimits): RequestOptions => ({
  ...(signal ? { signal } : {}),
  timeout: timeoutMs,
  // Progress never extends a deadline.
  maxTotalTimeout: timeoutMs,
  resetTimeoutOnProgress: false,
});

const createClient = (library: ClientLibrary, mode: 'auto' | 'legacy', onToolsChanged: () => void): Client =>
  new library.Client(CLIENT, {
    capabilities: {},
    versionNegotiation: { mode, probe: { timeoutMs: PROBE_MS } },
    jsonSchemaValidator: acceptAny,
    listMaxPages: MAX_PAGES,
    listChanged: { tools: { autoRefresh: false, debounceMs: 100, onChanged: () => onToolsChanged() } },
  });

/** A session with one server. */
export class McpConnection {
  private constructor(
    private readonly client: Client,
    private readonly http: McpHttp | null,
    /** Process id of a server of standard input. */
    readonly pid: number | null,
  ) {}

  /** Connects and negotiates the protocol. Rejects with the error of the client library. */
  static async open(
    target: McpTarget,
    listener: McpConnectionListener,
    limits: McpLimits,
  ): Promise<McpConnection> {
    if (target.transport === 'http') return McpConnection.connect(target, 'auto', listener, limits);
    const began = performance.now();
    try {
      return await McpConnection.connect(target, 'auto', listener, limits);
    } catch (error) {
      const timeoutMs = limits.timeoutMs - (performance.now() - began);
      if (timeoutMs < 1 || limits.signal?.aborted) throw error;
      // Some servers of the older protocol end at the probe.
      return McpConnection.connect(target, 'legacy', listener, { ...limits, timeoutMs });
    }
  }

  private static async connect(
    target: McpTarget,
    mode: 'auto' | 'legacy',
    { onToolsChanged, onClosed, onNoise }: McpConnectionListener,
    limits: McpLimits,
  ): Promise<McpConnection> {
    const library = await loadClientLibrary();
    const client = createClient(library, mode, onToolsChanged);
    const http = target.transport === 'http' ? new McpHttp(target.privateHosts) : null;
    const transport: Transport =
      target.transport === 'http'
        ? new library.StreamableHTTPClientTransport(new URL(target.url), {
            fetch: http?.fetch,
            requestInit: { headers: { ...target.headers } },
            reconnectionOptions: RECONNECTION,
          })
        : new StdioTransport(target.server, { onNoise });
    let isOpen = false;
    client.onclose = () => isOpen && onClosed();
    client.onerror = () => undefined;
    try {
      await client.connect(transport, optionsOf(limits));
    } catch (error) {
      await client.close().catch(() => undefined);
      await transport.close().catch(() => undefined);
      await http?.close();
      throw error;
    }
    isOpen = true;
    return new McpConnection(client, http, transport instanceof StdioTransport ? transport.pid : null);
  }

  get protocol(): string | null {
    return this.client.getNegotiatedProtocolVersion() ?? null;
  }

  /** Lists tools and features. Throws `MCP.REFUSED` for a server with too many tools. */
  async list(limits: McpLimits): Promise<McpListing> {
    const { tools: hasTools, resources, prompts } = this.client.getServerCapabilities() ?? {};
    const tools: ListedTool[] = [];
    let cursor: string | undefined;
    for (let page = 0; hasTools && (page === 0 || cursor !== undefined); page++) {
      const reply = await this.#page('tools/list', cursor, limits);
      tools.push(...(reply.tools ?? []));
      cursor = reply.nextCursor;
      if (tools.length > MAX_MCP_TOOLS || page >= MAX_PAGES)
        throw rejected('MCP.REFUSED', `the server lists over ${MAX_MCP_TOOLS} tools`);
    }
    const features: McpFeature[] = [...(resources ? ['resources' as const] : [])];
    return { tools, features: prompts ? [...features, 'prompts'] : features };
  }

  /** Calls a tool. The call is cancelled at the server when it ends otherwise than by its result. */
  async callTool({ name, input, definition }: McpToolCall, limits: McpLimits): Promise<McpResult> {
    const options = { ...optionsOf(limits), ...(definition ? { toolDefinition: definition } : {}) };
    const result = await this.client.callTool({ name, arguments: { ...input } }, options);
    const { content = [], structuredContent, isError = false } = result;
    return { content, structuredContent, isError };
  }

  listResources(cursor: string | undefined, limits: McpLimits): Promise<unknown> {
    return this.#page('resources/list', cursor, limits);
  }

  async readResource(uri: string, limits: McpLimits): Promise<McpResult> {
    const { contents } = await this.client.readResource(
      { uri },
      { ...optionsOf(limits), cacheMode: 'bypass' },
    );
    return { content: contents.map((resource) => ({ type: 'resource', resource })), isError: false };
  }

  listPrompts(cursor: string | undefined, limits: McpLimits): Promise<unknown> {
    return this.#page('prompts/list', cursor, limits);
  }

  async getPrompt(name: string, input: Record<string, string>, limits: McpLimits): Promise<McpResult> {
    const { messages } = await this.client.getPrompt({ name, arguments: input }, optionsOf(limits));
    const content = messages.flatMap(({ role, content: block }) => [
      { type: 'text', text: `[${role}]` },
      block,
    ]);
    return { content, isError: false };
  }

  /** One page: the client's own methods read all pages, without a limit of their size. */
  #page(
    method: 'tools/list' | 'resources/list' | 'prompts/list',
    cursor: string | undefined,
    limits: McpLimits,
  ): Promise<ListPage> {
    const params = cursor === undefined ? {} : { cursor };
    return this.client.request({ method, params }, optionsOf(limits));
  }

  async close(): Promise<void> {
    await this.client.close().catch(() => undefined);
    await this.http?.close();
  }
}
