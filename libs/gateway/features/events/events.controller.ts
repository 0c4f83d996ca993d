import { Controller, Inject } from '@nestjs/common';
import type { Principal } from '@antiphon/contracts/identity';
import { GATEWAY_ROUTES, type RouteInput } from '@antiphon/contracts/reference';
import { DATABASE_POOL } from '@antiphon/service-host';
import type { Pool } from 'pg';
import { CurrentPrincipal } from '../access/access-guard.js';
import { AgentAccess } from '../access/agent-access.js';
import { HandleRoute } from '../route/handle-route.js';
import { readEventPage, type EventPage } from './read-event-page.js';

/** Serves the event log of the caller's workspace. */
@Controller()
export class EventsController {
  constructor(
    @Inject(DATABASE_POOL) private readonly pool: Pool,
    @Inject(AgentAccess) private readonly access: AgentAccess,
  ) {}

  @HandleRoute(GATEWAY_ROUTES.readEvents)
  async read(
    { query }: RouteInput<typeof GATEWAY_ROUTES.readEvents>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<EventPage> {
    await this.access.require(principal, query.agent);
    return readEventPage(this.pool, principal.workspace, query, principal);
  }
}
