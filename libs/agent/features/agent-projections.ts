import { Inject, Injectable } from '@nestjs/common';
import { runProjection } from '@antiphon/event-store';
import type { ProjectionDefinition, RunningProjection } from '@antiphon/event-store';
import { onLogNotification } from '@antiphon/messaging';
import type { NatsLink } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import { DATABASE_POOL, LOGGER, NATS } from '@antiphon/service-host';
import type pg from 'pg';
import { agentChannels } from '@antiphon/channels-features/projections';
import { agentAgents, agentSessions } from './projections.js';

/**
 * Time within which notifications wake the projection of agents once, ms. People read its rows, and
 * a batch for every few turns would cost a plain turn a twentieth of its processor time.
 */
const AGENTS_DEBOUNCE_MS = 250;

/** Updates the rows of sessions and agents that sweeps and lists read. */
@Injectable()
export class AgentProjections {
  private running: readonly RunningProjection[] = [];

  constructor(
    @Inject(DATABASE_POOL) private readonly pool: pg.Pool,
    @Inject(NATS) private readonly nats: NatsLink,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  start(): void {
    const { pool, nats, logger } = this;
    const run = (definition: ProjectionDefinition, debounceMs?: number): RunningProjection =>
      runProjection({
        ...{ ...definition, pool, logger },
        subscribe: (wake, categories) => onLogNotification(nats, wake, { debounceMs, categories }),
      });
    this.running = [run(agentSessions), run(agentAgents, AGENTS_DEBOUNCE_MS), run(agentChannels)];
  }

  async stop(): Promise<void> {
    await Promise.all(this.running.map((projection) => projection.stop()));
  }
}
