import { Controller, Inject } from '@nestjs/common';
import { listAgentTools, type ToolView } from '@antiphon/contracts/agent';
import { isPermitted, type Principal } from '@antiphon/contracts/identity';
import { TOOL_ROUTES, type RouteInput, type ToolPage } from '@antiphon/contracts/reference';
import {
  addHttpTool,
  listPlugins,
  removeRemoteTool,
  type PluginView,
  type RegisteredTool,
} from '@antiphon/contracts/sandbox';
import { REQUESTS } from '@antiphon/service-host';
import { AgentAccess } from '../access/agent-access.js';
import { CurrentPrincipal } from '../access/access-guard.js';
import type { GatewayRequests } from '../gateway.ports.js';
import { HandleRoute } from '../route/handle-route.js';

type Routes = typeof TOOL_ROUTES;

/** Serves the catalogue of tools, and adds tools over HTTP. It runs none of them. */
@Controller()
export class ToolsController {
  constructor(
    @Inject(REQUESTS) private readonly requests: GatewayRequests,
    @Inject(AgentAccess) private readonly access: AgentAccess,
  ) {}

  @HandleRoute(TOOL_ROUTES.listTools)
  async list(
    { query: { at } }: RouteInput<Routes['listTools']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<ToolPage> {
    const { workspace } = principal;
    const [catalogue, plugins] = await Promise.all([
      this.requests.request(listAgentTools, { workspace, at }),
      this.readRefused(workspace),
    ]);
    const tools = await Promise.all(catalogue.tools.map((tool) => this.readable(principal, tool)));
    const unknown = await this.readableNames(principal, catalogue.unknown);
    return { ...catalogue, tools, unknown, plugins };
  }

  @HandleRoute(TOOL_ROUTES.addTool)
  add(
    { params: { name }, body: { url, secret, ...tool } }: RouteInput<Routes['addTool']>,
    @CurrentPrincipal() { workspace, caller }: Principal,
  ): Promise<RegisteredTool> {
    const request = { workspace, caller, tool: { name, ...tool }, endpoint: { url, secret } };
    return this.requests.request(addHttpTool, request);
  }

  @HandleRoute(TOOL_ROUTES.removeTool)
  remove(
    { params: { name } }: RouteInput<Routes['removeTool']>,
    @CurrentPrincipal() { workspace, caller }: Principal,
  ): Promise<{ removed: boolean }> {
    return this.requests.request(removeRemoteTool, { workspace, caller, name });
  }

  /** Returns the plug-ins that are not loaded; null if the sandbox does not respond. */
  private async readRefused(workspace: string): Promise<PluginView[] | null> {
    const listed = await this.requests.request(listPlugins, { workspace }).catch(() => null);
    return listed && listed.plugins.filter(({ status }) => status !== 'loaded');
  }

  /** Leaves out agents that the principal may not read, and names that only these have. */
  private async readableNames(
    principal: Principal,
    unknown: ToolPage['unknown'],
  ): Promise<ToolPage['unknown']> {
    if (!isPermitted(principal, 'agents:read')) return [];
    const readable = await Promise.all(
      unknown.map(async ({ name, agents }) => ({
        name,
        agents: await this.access.filter(principal, agents, (id) => [id]),
      })),
    );
    return readable.filter(({ agents }) => agents.length > 0);
  }

  /** Leaves out agents and calls that the principal may not read. */
  private async readable(principal: Principal, tool: ToolView): Promise<ToolView> {
    const isOfAgent = principal.agentId !== null;
    const seesAgents = isPermitted(principal, 'agents:read');
    const agents = seesAgents ? await this.access.filter(principal, tool.agents, ({ id }) => [id]) : [];
    const isWhole = seesAgents && !isOfAgent;
    const seesCalls = !isOfAgent && isPermitted(principal, 'sessions:read');
    return {
      ...{ ...tool, agents, agentCount: isWhole ? tool.agentCount : agents.length },
      calls: seesCalls ? tool.calls : null,
    };
  }
}
