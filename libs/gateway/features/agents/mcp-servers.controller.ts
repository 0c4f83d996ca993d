import { Controller, Inject } from '@nestjs/common';
import type { Principal } from '@antiphon/contracts/identity';
import { MCP_ROUTES, type RouteInput } from '@antiphon/contracts/reference';
import {
  addMcpServer,
  approveMcpTools,
  listMcpServers,
  removeMcpServer,
  type McpServerView,
} from '@antiphon/contracts/sandbox';
import { forbidden, invalid } from '@antiphon/kernel';
import { REQUESTS } from '@antiphon/service-host';
import { CurrentPrincipal } from '../access/access-guard.js';
import type { GatewayRequests } from '../gateway.ports.js';
import { HandleRoute } from '../route/handle-route.js';

type Routes = typeof MCP_ROUTES;

/** Forwards MCP servers to the sandbox service, which alone connects to them. */
@Controller()
export class McpServersController {
  constructor(@Inject(REQUESTS) private readonly requests: GatewayRequests) {}

  @HandleRoute(MCP_ROUTES.listMcpServers)
  list(
    _input: RouteInput<Routes['listMcpServers']>,
    @CurrentPrincipal() { workspace }: Principal,
  ): Promise<{ servers: McpServerView[] }> {
    return this.requests.request(listMcpServers, { workspace });
  }

  @HandleRoute(MCP_ROUTES.addMcpServer)
  add(
    { params: { name: server }, body: { url, command, args } }: RouteInput<Routes['addMcpServer']>,
    @CurrentPrincipal() { workspace, caller }: Principal,
  ): Promise<McpServerView> {
    if (command !== undefined || args !== undefined)
      throw forbidden(
        'MCP.STDIO_FORBIDDEN',
        'a program can be named only in the file of the operator. What to do: add [[mcp.servers]] there, or give a URL',
      );
    if (url === undefined) throw invalid('MCP.URL_MISSING', 'the body needs "url"');
    return this.requests.request(addMcpServer, { workspace, server, url, caller });
  }

  @HandleRoute(MCP_ROUTES.approveMcpTools)
  approve(
    { params: { name: server }, body: { tools } }: RouteInput<Routes['approveMcpTools']>,
    @CurrentPrincipal() { workspace, caller }: Principal,
  ): Promise<McpServerView> {
    return this.requests.request(approveMcpTools, { workspace, server, tools, caller });
  }

  @HandleRoute(MCP_ROUTES.removeMcpServer)
  remove(
    { params: { name: server } }: RouteInput<Routes['removeMcpServer']>,
    @CurrentPrincipal() { workspace, caller }: Principal,
  ): Promise<{ removed: boolean }> {
    return this.requests.request(removeMcpServer, { workspace, server, caller });
  }
}
