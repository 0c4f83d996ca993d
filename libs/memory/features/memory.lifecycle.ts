import { Inject, Injectable } from '@nestjs/common';
import type { OnApplicationBootstrap, OnApplicationShutdown } from '@nestjs/common';
import type pg from 'pg';
import { runProjection } from '@antiphon/event-store';
import type { RunningProjection } from '@antiphon/event-store';
import { transient } from '@antiphon/kernel';
import { onLogNotification } from '@antiphon/messaging';
import type { NatsLink } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import { DATABASE_POOL, HEALTH, LOGGER, NATS } from '@antiphon/service-host';
import type { HealthRegistry } from '@antiphon/service-host';
import { memoryFacts } from './projections.js';

/** Keeps memory's rows up with the log while the service runs. */
@Injectable()
export class MemoryLifecycle implements OnApplicationBootstrap, OnApplicationShutdown {
  #projection: RunningProjection | undefined;

  constructor(
    @Inject(DATABASE_POOL) private readonly pool: pg.Pool,
    @Inject(NATS) private readonly nats: NatsLink,
    @Inject(HEALTH) private readonly health: HealthRegistry,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  onApplicationBootstrap(): void {
    const projection = runProjection({
      ...memoryFacts,
      pool: this.pool,
      logger: this.logger,
      subscribe: (wake) => onLogNotification(this.nats, wake),
    });
    this.#projection = projection;
    this.health.addCheck('projection', () => {
      const { position, isFailing } = projection.status();
      if (isFailing) throw transient('MEMORY.PROJECTION_FAILING', 'the projection cannot follow the log');
      return Promise.resolve(`position ${position}`);
    });
  }

  async onApplicationShutdown(): Promise<void> {
    await this.#projection?.stop();
  }
}
