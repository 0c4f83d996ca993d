import { Controller, Inject } from '@nestjs/common';
import { addMcpServer, approveMcpTools, listMcpServers, removeMcpServer } from '@antiphon/contracts/sandbox';
import type { McpServerView, McpToolView } from '@antiphon/contracts/sandbox';
import { textOf } from '@antiphon/contracts/causes';
import { bug, conflict, isAppError, notFound, rejected } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import { LOGGER } from '@antiphon/service-host';
import type { McpServer } from '@antiphon/sandbox-domain';
import type { z } from 'zod';
import type { McpListing } from './mcp-connection.js';
import { checkMcpUrl } from './mcp-http.js';
import { mcpToolName } from './mcp-names.js';
import { MCP_REGISTRY, MCP_SERVERS } from './mcp.tokens.js';
import type { McpRegistry } from './mcp-registry.js';
import type { KnownServer, McpServers } from './mcp-servers.js';
import { explain } from './mcp-session.js';

const toolViews = ({ name: server, pinned, pending }: McpServer): McpToolView[] => {
  const open = [...pending.values()].map((tool): McpToolView => {
    const before = pinned.get(tool.tool);
    return {
      ...{ tool: tool.tool, name: mcpToolName(server, tool.tool), digest: tool.digest },
      ...{ state: before ? 'changed' : 'new', description: tool.description },
      pinned: before?.description ?? null,
    };
  });
  const stable = [...pinned.values()]
    .filter(({ tool }) => !pending.has(tool))
    .map(({ tool, digest, description }): McpToolView => ({
      ...{ tool, name: mcpToolName(server, tool), state: 'pinned', digest, description, pinned: null },
    }));
  return [...open, ...stable];
};

type AddRequest = z.output<typeof addMcpServer.request>;
type ApproveRequest = z.output<typeof approveMcpTools.request>;
type RemoveRequest = z.output<typeof removeMcpServer.request>;

/** Handles `cmd.sandbox.mcp.*`: the MCP servers of a workspace and approvals of their changes. */
@Controller()
export class ChangeMcpServers {
  constructor(
    @Inject(MCP_SERVERS) private readonly servers: McpServers,
    @Inject(MCP_REGISTRY) private readonly registry: McpRegistry,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  @HandleRequest(listMcpServers)
  async list({ workspace }: z.output<typeof listMcpServers.request>): Promise<{ servers: McpServerView[] }> {
    const servers = await this.servers.list(workspace);
    return { servers: servers.map((server) => this.view(workspace, server)) };
  }

  /** Connects first: the facts say what the server listed. */
  @HandleRequest(addMcpServer)
  async add({ workspace, server, url, caller }: AddRequest): Promise<McpServerView> {
    this.requireUnconfigured(workspace, server);
    const target = this.servers.targetOf(url);
    if (target.transport === 'http') checkMcpUrl(url, target.privateHosts);
    const known = await this.servers.find(workspace, server);
    if (known && known.state.url !== url)
      throw conflict(
        'MCP.EXISTS',
        `the workspace has an MCP server "${server}". What to do: choose another name`,
      );
    const { tools, features } = this.servers.describe(server, await this.listOnce(server, url));
    await this.registry.commit(workspace, { type: 'Add', server, url, tools, features, actor: caller });
    this.logger.info({ workspace, server, tools: tools.length, caller }, 'MCP server added');
    return this.viewOf(workspace, server);
  }

  @HandleRequest(approveMcpTools)
  async approve({ workspace, server, tools, caller }: ApproveRequest): Promise<McpServerView> {
    await this.registry.commit(workspace, { type: 'Approve', server, tools, actor: caller });
    this.logger.info({ workspace, server, tools: tools.length, caller }, 'MCP tools approved');
    return this.viewOf(workspace, server);
  }

  @HandleRequest(removeMcpServer)
  async remove({ workspace, server, caller }: RemoveRequest): Promise<{ removed: boolean }> {
    this.requireUnconfigured(workspace, server);
    const { isChanged } = await this.registry.commit(workspace, { type: 'Remove', server, actor: caller });
    await this.servers.forget(workspace, server);
    if (isChanged) this.logger.info({ workspace, server, caller }, 'MCP server removed');
    return { removed: isChanged };
  }

  /** Lists tools over a connection of its own. Throws `MCP.UNREACHABLE` and `MCP.REFUSED`. */
  private async listOnce(server: string, url: string): Promise<McpListing> {
    let listed: McpListing | undefined;
    const session = this.servers.createSession(server, this.servers.targetOf(url), (listing) => {
      listed = listing;
      return Promise.resolve();
    });
    try {
      await session.refresh();
    } catch (error) {
      if (isAppError(error)) throw error;
      throw rejected('MCP.UNREACHABLE', textOf(explain(server, error)));
    } finally {
      await session.close();
    }
    if (listed === undefined) throw bug('MCP.UNREACHABLE', 'the server was not listed');
    return listed;
  }

  private requireUnconfigured(workspace: string, server: string): void {
    if (!this.servers.isConfigured(workspace, server)) return;
    throw conflict(
      'MCP.CONFIGURED',
      `the MCP server "${server}" is one of the configuration, which decides about it. What to do: choose another name`,
    );
  }

  private async viewOf(workspace: string, server: string): Promise<McpServerView> {
    const known = await this.servers.find(workspace, server);
    if (!known) throw notFound('MCP.NOT_FOUND', `the workspace has no MCP server "${server}"`);
    return this.view(workspace, known);
  }

  private view(workspace: string, { state, target, isConfigured }: KnownServer): McpServerView {
    const { name, features, addedBy, addedAt } = state;
    const session = this.servers.openSession(workspace, name)?.status;
    return {
      ...{ name, origin: isConfigured ? 'configuration' : 'added', transport: target.transport },
      url: target.transport === 'http' ? target.url : null,
      ...(session ?? { status: 'idle', problem: null, protocol: null }),
      ...{ features: [...features], tools: toolViews(state), addedBy, addedAt },
    };
  }
}
