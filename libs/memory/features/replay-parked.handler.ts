import { Controller, Inject } from '@nestjs/common';
import { replayParkedContract } from '@antiphon/contracts/log';
import { replayParkedStreams } from '@antiphon/event-store';
import { HandleRequest } from '@antiphon/messaging';
import { DATABASE_POOL } from '@antiphon/service-host';
import type pg from 'pg';
import type { z } from 'zod';
import { memoryProjections } from './projections.js';

const replayParked = replayParkedContract('memory');

/** Handles parked streams of the memory service's projections again, for an operator. */
@Controller()
export class ReplayParked {
  constructor(@Inject(DATABASE_POOL) private readonly pool: pg.Pool) {}

  @HandleRequest(replayParked)
  replay(request: z.output<typeof replayParked.request>): Promise<z.input<typeof replayParked.reply>> {
    return replayParkedStreams(this.pool, memoryProjections, request);
  }
}
