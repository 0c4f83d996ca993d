// Tokens of the global PlatformModule; each comment names the type of the provided value.

/** `EventStore & EventStorePg`. */
export const EVENT_STORE = Symbol('EVENT_STORE');
/** `LeaseStore`. */
export const LEASE_STORE = Symbol('LEASE_STORE');
/** `pg.Pool`. */
export const DATABASE_POOL = Symbol('DATABASE_POOL');
/** `NatsLink`. */
export const NATS = Symbol('NATS');
/** `RequestClient`. */
export const REQUESTS = Symbol('REQUESTS');
/** `AntiphonConfig`. */
export const CONFIG = Symbol('CONFIG');
/** `Logger`. */
export const LOGGER = Symbol('LOGGER');
/** `Clock`. */
export const CLOCK = Symbol('CLOCK');
/** `Ids`. */
export const IDS = Symbol('IDS');
/** `ServiceIdentity`. */
export const SERVICE_IDENTITY = Symbol('SERVICE_IDENTITY');
/** `HealthRegistry`: features add their checks and facts to it. */
export const HEALTH = Symbol('HEALTH');
/** `Environment`: for reading a provider's key by its configured name. Never log it. */
export const ENVIRONMENT = Symbol('ENVIRONMENT');
