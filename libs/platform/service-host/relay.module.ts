import { Inject, Injectable, Module } from '@nestjs/common';
import type { DynamicModule, OnApplicationBootstrap, OnModuleDestroy } from '@nestjs/common';
import { createWorkStarts } from '@antiphon/database';
import { createSharedLogPages } from '@antiphon/event-store';
import type { EventStore, LeaseStore } from '@antiphon/event-store';
import type pg from 'pg';
import { openJetStreamManager, startRelay } from '@antiphon/messaging';
import type { NatsLink, Relay, RelayOptions } from '@antiphon/messaging';
import { observeGauges } from '@antiphon/observability';
import type { Logger } from '@antiphon/observability';
import type { HealthRegistry } from './health-registry.js';
import type { ServiceIdentity } from './service-env.js';
import { DATABASE_POOL, EVENT_STORE, HEALTH, LEASE_STORE, LOGGER, NATS, SERVICE_IDENTITY } from './tokens.js';

type RelayGauge = 'antiphon_relay_leading' | 'antiphon_relay_lag_events';

const observeRelay = async (
  relay: Relay,
  log: EventStore,
  report: (name: RelayGauge, value: number) => void,
): Promise<void> => {
  const { leading, position } = relay.status();
  report('antiphon_relay_leading', leading ? 1 : 0);
  if (!leading || position === null) return;
  report('antiphon_relay_lag_events', Math.max(0, (await log.headPosition()) - position));
};

const ANNOUNCE = Symbol('ANNOUNCE');
type Announce = NonNullable<RelayOptions['announce']>;

@Injectable()
class RelayHost implements OnApplicationBootstrap, OnModuleDestroy {
  private relay: Relay | undefined;
  private unobserve: () => void = () => undefined;

  constructor(
    @Inject(NATS) private readonly link: NatsLink,
    @Inject(EVENT_STORE) private readonly log: EventStore,
    @Inject(LEASE_STORE) private readonly leases: LeaseStore,
    @Inject(SERVICE_IDENTITY) private readonly identity: ServiceIdentity,
    @Inject(HEALTH) private readonly health: HealthRegistry,
    @Inject(LOGGER) private readonly logger: Logger,
    @Inject(ANNOUNCE) private readonly announce: Announce,
    @Inject(DATABASE_POOL) private readonly pool: pg.Pool,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    const { link, leases, logger, announce } = this;
    const { readLogPage, leave } = createSharedLogPages(this.pool, this.log);
    const log = { ...this.log, readLogPage, leaveLogPages: leave };
    const starts = createWorkStarts(this.pool);
    const relay = startRelay({ link, log, leases, owner: this.identity.id, logger, announce, starts });
    this.relay = relay;
    const manager = await openJetStreamManager(link.connection);
    this.health.addCheck('jetstream', async () => void (await manager.streams.info('EVENTS')));
    this.health.addFact('relay', () => ({ ...relay.status() }));
    this.unobserve = observeGauges(
      {
        antiphon_relay_leading: '1 in the process that relays the log to EVENTS, else 0',
        antiphon_relay_lag_events: 'Events of the log that EVENTS lacks, reported by the leading process',
      },
      (report) => observeRelay(relay, log, report),
    );
  }

  async onModuleDestroy(): Promise<void> {
    this.unobserve();
    await this.relay?.stop();
  }
}

/** Relays the log to JetStream, in one of the processes that import it at a time. */
@Module({})
export class RelayModule {
  /** `announce` returns the message about a relayed event, null for most events. */
  static announcing(announce: Announce): DynamicModule {
    return { module: RelayModule, providers: [RelayHost, { provide: ANNOUNCE, useValue: announce }] };
  }
}
