import { Controller, Inject } from '@nestjs/common';
import { WebSocketGateway } from '@nestjs/websockets';
import { listTurnsOfEntry } from '@antiphon/contracts/agent';
import { isPermitted } from '@antiphon/contracts/identity';
import type { Principal } from '@antiphon/contracts/identity';
import { queryMemory, recallMemory } from '@antiphon/contracts/memory';
import { MEMORY_ROUTES, METHODS, type RouteInput } from '@antiphon/contracts/reference';
import { REQUESTS } from '@antiphon/service-host';
import type { z } from 'zod';
import { CurrentPrincipal } from '../access/access-guard.js';
import type { GatewayRequests } from '../gateway.ports.js';
import { HandleRoute } from '../route/handle-route.js';
import { HandleMethod } from '../sockets/handle-method.js';
import type { MethodCall } from '../sockets/rpc-method.js';

type Routes = typeof MEMORY_ROUTES;
type Page = z.output<typeof queryMemory.reply>;
type Entry = z.output<typeof recallMemory.reply>;

const callerOf = ({ workspace, agentId }: Principal) => ({
  workspace,
  ...(agentId === null ? {} : { callerAgent: agentId }),
});

const query = (
  requests: GatewayRequests,
  principal: Principal,
  { sessionId, agent, superseded, ...rest }: MethodCall<'memory.query'>['params'],
): Promise<Page> => {
  const target = sessionId === undefined ? { agentId: agent ?? '' } : { sessionId };
  return requests.request(queryMemory, {
    ...callerOf(principal),
    ...rest,
    target,
    includeSuperseded: superseded,
  });
};

/** Serves what memory has learned. */
@Controller()
export class MemoryController {
  constructor(@Inject(REQUESTS) private readonly requests: GatewayRequests) {}

  @HandleRoute(MEMORY_ROUTES.queryMemory)
  query(
    { query: { session, ...rest } }: RouteInput<Routes['queryMemory']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<Page> {
    return query(this.requests, principal, { ...rest, sessionId: session });
  }

  @HandleRoute(MEMORY_ROUTES.recallMemory)
  recall(
    { params: { memoryId }, query: { at } }: RouteInput<Routes['recallMemory']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<Entry> {
    return this.requests.request(recallMemory, { ...callerOf(principal), memoryId, at });
  }

  @HandleRoute(MEMORY_ROUTES.listTurnsOfEntry)
  turns(
    { params: { memoryId }, query: page }: RouteInput<Routes['listTurnsOfEntry']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<z.output<typeof listTurnsOfEntry.reply>> {
    const includesContent = isPermitted(principal, 'sessions:read');
    return this.requests.request(listTurnsOfEntry, {
      ...{ ...callerOf(principal), memoryId, includesContent, ...page },
    });
  }
}

/** Serves what memory has learned over the WebSocket. */
@WebSocketGateway()
export class MemoryMethods {
  constructor(@Inject(REQUESTS) private readonly requests: GatewayRequests) {}

  @HandleMethod(METHODS['memory.query'])
  query({ params, principal }: MethodCall<'memory.query'>): Promise<Page> {
    return query(this.requests, principal, params);
  }

  @HandleMethod(METHODS['memory.recall'])
  recall({ params, principal }: MethodCall<'memory.recall'>): Promise<Entry> {
    return this.requests.request(recallMemory, { ...callerOf(principal), ...params });
  }
}
