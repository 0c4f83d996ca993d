export type { HealthCheck, HealthRegistry } from './health-registry.js';
export type { HttpOptions } from './http-server.js';
export { closePlatform, openPlatform } from './platform.js';
export type { Platform, PlatformOptions } from './platform.js';
export { PlatformModule } from './platform.module.js';
export { PROBLEM_MEDIA_TYPE, makeProblem, problemOf, retryAfterSeconds, statusOf } from './problem.js';
export type { ProblemDocument } from './problem.js';
export { ProblemFilter, sendProblem } from './problem.filter.js';
export { LogRootsModule } from './log-roots/log-roots.module.js';
export { RelayModule } from './relay.module.js';
export { runService } from './run-service.js';
export { readServiceEnv } from './service-env.js';
export type { Environment, ServiceEnv } from './service-env.js';
export type { ServiceIdentity } from './service-identity.js';
export { startService } from './start-service.js';
export type { RunningService, ServiceDefinition, StartOptions } from './start-service.js';
export {
  CLOCK,
  CONFIG,
  DATABASE_POOL,
  ENVIRONMENT,
  EVENT_STORE,
  HEALTH,
  IDS,
  LEASE_STORE,
  LOGGER,
  NATS,
  REQUESTS,
  SERVICE_IDENTITY,
} from './tokens.js';
export { VERSION } from './version.js';
