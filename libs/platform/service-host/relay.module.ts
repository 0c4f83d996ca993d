import { Inject, Injectable, Module } from '@nestjs/common';
import type { OnApplicationBootstrap, OnModuleDestroy } from '@nestjs/common';
import type { EventStore, LeaseStore } from '@antiphon/event-store';
import { managerOf, startRelay } from '@antiphon/messaging';
import type { NatsLink, Relay } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import type { HealthRegistry } from './health-registry.js';
import type { ServiceIdentity } from './service-identity.js';
import { EVENT_STORE, HEALTH, LEASE_STORE, LOGGER, NATS, SERVICE_IDENTITY } from './tokens.js';

@Injectable()
class RelayHost implements OnApplicationBootstrap, OnModuleDestroy {
  private relay: Relay | undefined;

  constructor(
    @Inject(NATS) private readonly link: NatsLink,
    @Inject(EVENT_STORE) private readonly log: EventStore,
    @Inject(LEASE_STORE) private readonly leases: LeaseStore,
    @Inject(SERVICE_IDENTITY) private readonly identity: ServiceIdentity,
    @Inject(HEALTH) private readonly health: HealthRegistry,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    const { link, log, leases, logger } = this;
    const relay = startRelay({ link, log, leases, owner: this.identity.id, logger });
    this.relay = relay;
    const manager = await managerOf(link.connection);
    this.health.addCheck('jetstream', async () => void (await manager.streams.info('EVENTS')));
    this.health.addFact('relay', () => ({ ...relay.status() }));
  }

  async onModuleDestroy(): Promise<void> {
    await this.relay?.stop();
  }
}

/** Relays the log to JetStream from this service; of its processes one does at a time. */
@Module({ providers: [RelayHost] })
export class RelayModule {}
