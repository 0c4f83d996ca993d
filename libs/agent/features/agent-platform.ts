import { Inject, Injectable } from '@nestjs/common';
import type pg from 'pg';
import type { AntiphonConfig } from '@antiphon/config';
import type { EventStore, LeaseStore, PastReads } from '@antiphon/event-store';
import type { Clock, Ids } from '@antiphon/kernel';
import type { NatsLink, RequestClient } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import * as tokens from '@antiphon/service-host';
import type { Environment, HealthRegistry, ServiceIdentity } from '@antiphon/service-host';
import { createPastReads } from './projections.js';

/** Resources of the host process that the agent uses. */
@Injectable()
export class AgentPlatform {
  @Inject(tokens.CONFIG) readonly config!: AntiphonConfig;
  @Inject(tokens.EVENT_STORE) readonly store!: EventStore;
  @Inject(tokens.LEASE_STORE) readonly leases!: LeaseStore;
  @Inject(tokens.DATABASE_POOL) readonly pool!: pg.Pool;
  @Inject(tokens.NATS) readonly nats!: NatsLink;
  @Inject(tokens.REQUESTS) readonly requests!: RequestClient;
  @Inject(tokens.LOGGER) readonly logger!: Logger;
  @Inject(tokens.CLOCK) readonly clock!: Clock;
  @Inject(tokens.IDS) readonly ids!: Ids;
  @Inject(tokens.SERVICE_IDENTITY) readonly identity!: ServiceIdentity;
  @Inject(tokens.HEALTH) readonly health!: HealthRegistry;
  @Inject(tokens.ENVIRONMENT) readonly env!: Environment;
  #past: PastReads | null = null;

  /** Reads of the past, on connections that are opened when they are needed. */
  get past(): PastReads {
    return (this.#past ??= createPastReads(this.pool));
  }
}
