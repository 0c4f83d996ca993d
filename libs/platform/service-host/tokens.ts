import type pg from 'pg';
import type { AntiphonConfig } from '@antiphon/config';
import type { EventStore, EventStorePg, LeaseStore } from '@antiphon/event-store';
import type { Clock, Ids } from '@antiphon/kernel';
import type { NatsLink, RequestClient } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import type { HealthRegistry } from './health-registry.js';
import { createToken } from './provide.js';
import type { Environment, ServiceIdentity } from './service-env.js';

// Tokens of the global PlatformModule.

export const EVENT_STORE = createToken<EventStore & EventStorePg>('EVENT_STORE');
export const LEASE_STORE = createToken<LeaseStore>('LEASE_STORE');
export const DATABASE_POOL = createToken<pg.Pool>('DATABASE_POOL');
export const NATS = createToken<NatsLink>('NATS');
export const REQUESTS = createToken<RequestClient>('REQUESTS');
export const CONFIG = createToken<AntiphonConfig>('CONFIG');
export const LOGGER = createToken<Logger>('LOGGER');
export const CLOCK = createToken<Clock>('CLOCK');
export const IDS = createToken<Ids>('IDS');
export const SERVICE_IDENTITY = createToken<ServiceIdentity>('SERVICE_IDENTITY');
/** Features add their checks and facts to it. */
export const HEALTH = createToken<HealthRegistry>('HEALTH');
/** For reading a provider's key by its configured name. Never log it. */
export const ENVIRONMENT = createToken<Environment>('ENVIRONMENT');
