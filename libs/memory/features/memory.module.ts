import { Inject, Injectable, Module } from '@nestjs/common';
import type { OnApplicationBootstrap, OnApplicationShutdown, Provider } from '@nestjs/common';
import type pg from 'pg';
import type { AntiphonConfig } from '@antiphon/config';
import { runProjection } from '@antiphon/event-store';
import type { RunningProjection } from '@antiphon/event-store';
import { transient } from '@antiphon/kernel';
import { onLogNotification } from '@antiphon/messaging';
import type { NatsLink } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import { CONFIG, DATABASE_POOL, HEALTH, LOGGER, NATS } from '@antiphon/service-host';
import type { HealthRegistry } from '@antiphon/service-host';
import { AssembleContext } from './context/assemble-context.handler.js';
import { BelievedFacts } from './context/believed-facts.handler.js';
import { RECALL_FACTS, createRecallFacts } from './context/recall-facts.js';
import { IDENTITY_STORE, openIdentityStore } from './identity/identity-store.js';
import type { IdentityStore } from './identity/identity-store.js';
import { memoryFacts } from './projections/apply-session-events.js';
import { MemoryEntries } from './recall/memory-entries.handler.js';
import { ReplayParked } from './replay-parked.handler.js';

const identityProvider: Provider = {
  provide: IDENTITY_STORE,
  inject: [CONFIG, LOGGER, HEALTH],
  useFactory: async (
    config: AntiphonConfig,
    logger: Logger,
    health: HealthRegistry,
  ): Promise<IdentityStore> => {
    const store = await openIdentityStore(config.agents, logger);
    health.addFact('identities', () => store.facts().map((fact) => ({ ...fact })));
    return store;
  },
};

const recallProvider: Provider = {
  provide: RECALL_FACTS,
  inject: [DATABASE_POOL],
  useFactory: createRecallFacts,
};

/** Runs the projection of facts for the lifetime of the service. */
@Injectable()
class MemoryLifecycle implements OnApplicationBootstrap, OnApplicationShutdown {
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
      subscribe: (wake, categories) => onLogNotification(this.nats, wake, { categories }),
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

/**
 * Memory: facts from conversations and the agents' identities, for contexts within a token budget.
 */
@Module({
  controllers: [AssembleContext, BelievedFacts, MemoryEntries, ReplayParked],
  providers: [identityProvider, recallProvider, MemoryLifecycle],
})
export class MemoryModule {}
