/**
 * What every service finds in its Nest container (PlatformModule is global). Types:
 * EVENT_STORE: EventStore & EventStorePg · LEASE_STORE: LeaseStore · DATABASE_POOL: pg.Pool · NATS: NatsLink ·
 * REQUESTS: RequestClient · CONFIG: AntiphonConfig · LOGGER: Logger · CLOCK: Clock · IDS: Ids ·
 * SERVICE_IDENTITY: ServiceIdentity · HEALTH: HealthRegistry · ENVIRONMENT: Environment
 */
export const EVENT_STORE = Symbol('EVENT_STORE');
export const LEASE_STORE = Symbol('LEASE_STORE');
export const DATABASE_POOL = Symbol('DATABASE_POOL');
export const NATS = Symbol('NATS');
export const REQUESTS = Symbol('REQUESTS');
export const CONFIG = Symbol('CONFIG');
export const LOGGER = Symbol('LOGGER');
export const CLOCK = Symbol('CLOCK');
export const IDS = Symbol('IDS');
export const SERVICE_IDENTITY = Symbol('SERVICE_IDENTITY');
/** Where a feature adds its own checks and facts. */
export const HEALTH = Symbol('HEALTH');
/** The process's variables, for what reads a provider's key by the name in the configuration; never log it. */
export const ENVIRONMENT = Symbol('ENVIRONMENT');
