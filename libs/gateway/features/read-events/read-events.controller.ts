import { Controller, Get, Inject, Query } from '@nestjs/common';
import { EventsQuery } from '@antiphon/contracts/gateway';
import { invalid } from '@antiphon/kernel';
import { DATABASE_POOL } from '@antiphon/service-host';
import type { Pool } from 'pg';
import { WORKSPACE } from '../gateway.tokens.js';
import { readEventPage, type EventPage } from './event-query.js';

/** `GET /api/v1/events`: the log of the caller's workspace. */
@Controller('api/v1/events')
export class ReadEventsController {
  constructor(
    @Inject(DATABASE_POOL) private readonly pool: Pool,
    @Inject(WORKSPACE) private readonly workspace: string,
  ) {}

  @Get()
  read(@Query() query: unknown): Promise<EventPage> {
    const parsed = EventsQuery.safeParse(query);
    if (parsed.success) return readEventPage(this.pool, this.workspace, parsed.data);
    const problems = parsed.error.issues.map(({ path, message }) =>
      [...path.map(String), message].join(': '),
    );
    throw invalid('GATEWAY.INVALID_QUERY', problems.join('; '));
  }
}
