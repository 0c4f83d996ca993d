import { Controller, Inject } from '@nestjs/common';
import type { Principal } from '@antiphon/contracts/identity';
import { GATEWAY_ROUTES, type RouteInput } from '@antiphon/contracts/reference';
import { DATABASE_POOL } from '@antiphon/service-host';
import type { Pool } from 'pg';
import { CurrentPrincipal } from '../access/access-guard.js';
import { readEventPage, type EventPage } from './event-view.js';
import { HandleRoute } from '../http/handle-route.js';

/** Serves the event log of the caller's workspace. */
@Controller()
export class EventsController {
  constructor(@Inject(DATABASE_POOL) private readonly pool: Pool) {}

  @HandleRoute(GATEWAY_ROUTES.readEvents)
  read(
    { query }: RouteInput<typeof GATEWAY_ROUTES.readEvents>,
    @CurrentPrincipal() { workspace }: Principal,
  ): Promise<EventPage> {
    return readEventPage(this.pool, workspace, query);
  }
}
