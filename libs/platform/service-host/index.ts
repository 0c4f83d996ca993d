export type { HealthCheck, HealthRegistry } from './health-registry.js';
export type { HttpOptions } from './http-server.js';
export { closePlatform, openPlatform } from './platform.js';
export type { Platform, PlatformOptions } from './platform.js';
export { PlatformModule } from './platform.module.js';
export {
  PROBLEM_MEDIA_TYPE,
  ProblemFilter,
  makeProblem,
  problemOf,
  retryAfterSeconds,
  sendProblem,
  statusOf,
} from './problem.filter.js';
export type { ProblemDocument } from './problem.filter.js';
export { createToken, provide, provideClass } from './provide.js';
export type { Token } from './provide.js';
export { ADOPT_ROOTS, runAdoptRoots } from './adopt-log-roots.js';
export { Archiver, ArchiverModule } from './archiver.module.js';
export { LogStatusModule } from './log-status.module.js';
export { LogRootsModule } from './log-roots.module.js';
export { RelayModule } from './relay.module.js';
export { runService } from './run-service.js';
export { VERSION, readHostedEnvironments, readServiceEnv } from './service-env.js';
export type { Environment, ServiceEnv, ServiceIdentity } from './service-env.js';
export { startService } from './start-service.js';
export type { HostedService, RunningService, ServiceDefinition, StartOptions } from './start-service.js';
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
