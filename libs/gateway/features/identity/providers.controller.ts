import { Controller, Inject } from '@nestjs/common';
import {
  connectProvider,
  listAgents,
  listProviderModels,
  listProviders,
  removeProvider,
  testProvider,
  type ProviderTest,
  type ProviderView,
} from '@antiphon/contracts/agent';
import type { Principal } from '@antiphon/contracts/identity';
import { PROVIDER_ROUTES, type RouteInput } from '@antiphon/contracts/reference';
import { REQUESTS } from '@antiphon/service-host';
import type { z } from 'zod';
import { CurrentPrincipal } from '../access/access-guard.js';
import type { GatewayRequests } from '../gateway.ports.js';
import { HandleRoute } from '../route/handle-route.js';

type Routes = typeof PROVIDER_ROUTES;

/** Maximum number of agents that a removal names. */
const MAX_AGENTS = 1_000;

/** Forwards providers to the agent service, which alone stores their keys and calls them. */
@Controller()
export class ProvidersController {
  constructor(@Inject(REQUESTS) private readonly requests: GatewayRequests) {}

  @HandleRoute(PROVIDER_ROUTES.listProviders)
  list(
    _input: RouteInput<Routes['listProviders']>,
    @CurrentPrincipal() { workspace }: Principal,
  ): Promise<z.output<typeof listProviders.reply>> {
    return this.requests.request(listProviders, { workspace });
  }

  @HandleRoute(PROVIDER_ROUTES.testProvider)
  test(
    { body }: RouteInput<Routes['testProvider']>,
    @CurrentPrincipal() { workspace }: Principal,
  ): Promise<ProviderTest> {
    return this.requests.request(testProvider, { workspace, ...body });
  }

  @HandleRoute(PROVIDER_ROUTES.createProvider)
  create(
    { body: { name, ...spec }, idempotencyKey }: RouteInput<Routes['createProvider']>,
    @CurrentPrincipal() { workspace, caller }: Principal,
  ): Promise<ProviderView> {
    const request = { workspace, caller, name: name ?? spec.kind, ...spec, isNew: true, idempotencyKey };
    return this.requests.request(connectProvider, request);
  }

  @HandleRoute(PROVIDER_ROUTES.connectProvider)
  connect(
    { params, body }: RouteInput<Routes['connectProvider']>,
    @CurrentPrincipal() { workspace, caller }: Principal,
  ): Promise<ProviderView> {
    return this.requests.request(connectProvider, { workspace, caller, name: params.name, ...body });
  }

  @HandleRoute(PROVIDER_ROUTES.removeProvider)
  async remove(
    { params: { name } }: RouteInput<Routes['removeProvider']>,
    @CurrentPrincipal() { workspace, caller }: Principal,
  ): Promise<{ removed: boolean; agents: string[] }> {
    const { removed } = await this.requests.request(removeProvider, { workspace, caller, name });
    const { agents } = await this.requests.request(listAgents, { workspace, limit: MAX_AGENTS });
    return { removed, agents: agents.filter(({ provider }) => provider === name).map(({ id }) => id) };
  }

  @HandleRoute(PROVIDER_ROUTES.listProviderModels)
  models(
    { params: { name } }: RouteInput<Routes['listProviderModels']>,
    @CurrentPrincipal() { workspace }: Principal,
  ): Promise<ProviderTest> {
    return this.requests.request(listProviderModels, { workspace, name });
  }
}
