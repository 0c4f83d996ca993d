import type { DynamicModule, Type } from '@nestjs/common';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { isLoopback } from '@antiphon/config';
import { reachPosition } from '@antiphon/event-store';
import { invalid, transient } from '@antiphon/kernel';
import type { ServiceName } from '@antiphon/contracts/messaging';
import { LocalRequests, RequestServer, maintainStreams, mayRequest } from '@antiphon/messaging';
import type { StreamName } from '@antiphon/messaging';
import {
  addPlatformChecks,
  addStreamCheck,
  addTemporalCheck,
  observePlatforms,
} from './dependency-checks.js';
import { configureHttp, createHttpAdapter, nestLogger } from './http-server.js';
import type { HttpOptions } from './http-server.js';
import { closePlatform, openPlatform } from './platform.js';
import type { Platform, PlatformOptions } from './platform.js';
import { PlatformModule } from './platform.module.js';
import { ProblemFilter } from './problem.filter.js';

export interface ServiceDefinition {
  readonly service: ServiceName;
  /** The service's own module; it injects the platform by token. */
  readonly module: Type | DynamicModule;
  readonly http?: HttpOptions;
  /** True for a service that uses Temporal: the server's health is part of its own. */
  readonly temporal?: boolean;
  /** JetStream streams that the service creates and maintains; their health is part of its own. */
  readonly streams?: readonly StreamName[];
  /** Called before the service listens, to add hooks to Fastify and its HTTP server. */
  readonly configure?: (app: NestFastifyApplication, platform: Platform) => void | Promise<void>;
}

export interface RunningService {
  readonly app: NestFastifyApplication;
  readonly platform: Platform;
  /** Services in the same process. */
  readonly hosted: readonly RunningService[];
  /** HTTP address. */
  readonly host: string;
  readonly port: number;
  /**
   * Shuts down gracefully: refuses new work, finishes work in progress, closes. Safe to call twice.
   */
  stop(): Promise<void>;
}

/** A service in the process of another one, with its own environment, credentials and connections. */
export type HostedService = ServiceDefinition & Pick<PlatformOptions, 'env'>;

export type StartOptions = ServiceDefinition &
  Omit<PlatformOptions, 'service' | 'local' | 'telemetry'> & {
    /** Services that run in this process. Requests to them do not go to NATS (docs/adr/0165). */
    readonly hosts?: readonly HostedService[];
  };

/** The other services of a process. */
interface Process {
  /** Requests of the host that this service answers; undefined for the host itself. */
  readonly local?: LocalRequests;
  readonly hosted: readonly RunningService[];
}

const rootModule = (definition: ServiceDefinition, platform: Platform): DynamicModule => {
  @Module({})
  class Root {}
  return { module: Root, imports: [PlatformModule.forService(platform), definition.module] };
};

/** Maintains the service's streams and checks their health; returns a function that stops it. */
const maintainOwnStreams = async (platform: Platform, names: readonly StreamName[]): Promise<() => void> => {
  if (names.length === 0) return () => {};
  await addStreamCheck(platform, names);
  return maintainStreams(platform.nats, names, platform.logger);
};

/** Returns the limits of requests: those of the configuration for the gateway. */
const httpOptionsOf = ({ service, http }: ServiceDefinition, { config }: Platform): HttpOptions => {
  const { headerTimeoutMs: headersTimeoutMs, bodyTimeoutMs: requestTimeoutMs } = config.gateway;
  return service === 'gateway' ? { headersTimeoutMs, requestTimeoutMs, ...http } : { ...http };
};

const createApp = async (
  definition: ServiceDefinition,
  platform: Platform,
): Promise<NestFastifyApplication> => {
  const { logger } = platform;
  const adapter = createHttpAdapter(definition.service, logger, httpOptionsOf(definition, platform));
  const app = await NestFactory.create<NestFastifyApplication>(rootModule(definition, platform), adapter, {
    logger: nestLogger(logger),
    abortOnError: false,
    bodyParser: false,
  });
  configureHttp(app, { service: definition.service, logger }, definition.http);
  app.useGlobalFilters(new ProblemFilter(logger));
  await definition.configure?.(app, platform);
  return app;
};

/**
 * Refuses a gateway that listens for other machines without a token. Other services serve probes
 * only.
 */
const assertGuarded = ({ identity, config }: Platform, host: string): void => {
  if (identity.service !== 'gateway' || config.gateway.token !== null || isLoopback(host)) return;
  // Without local programs every request needs an API key.
  if (!config.gateway.loopbackWithoutToken) return;
  throw invalid(
    'GATEWAY.TOKEN_MISSING',
    `the gateway would listen on ${host} without a token: set ANTIPHON_GATEWAY_TOKEN or gateway.token`,
  );
};

const addressOf = (platform: Platform): { host: string; port: number } => {
  const { identity, settings, config } = platform;
  const own = identity.service === 'gateway' ? config.gateway : { host: '127.0.0.1', port: 0 };
  const host = settings.httpHost ?? own.host;
  assertGuarded(platform, host);
  return { host, port: settings.httpPort ?? own.port };
};

const listen = async (
  app: NestFastifyApplication,
  platform: Platform,
): Promise<{ host: string; port: number }> => {
  const { host, port } = addressOf(platform);
  await app.listen(port, host);
  const address = app.getHttpServer().address();
  return { host, port: address !== null && typeof address === 'object' ? address.port : port };
};

const once = (work: () => Promise<void>): (() => Promise<void>) => {
  let running: Promise<void> | undefined;
  return () => (running ??= work());
};

/** Time for which a read waits until its projections have reached the position that it demands, ms. */
const READ_WAIT_MS = 2_000;

const startOn = async (
  platform: Platform,
  definition: ServiceDefinition,
  { local, hosted }: Process,
): Promise<RunningService> => {
  addPlatformChecks(platform);
  const isHost = local === undefined;
  const stopObserving = isHost
    ? observePlatforms([platform, ...hosted.map((other) => other.platform)])
    : () => undefined;
  const closeTemporal = definition.temporal ? addTemporalCheck(platform) : () => Promise.resolve();
  const stopStreams = await maintainOwnStreams(platform, definition.streams ?? []);
  const app = await createApp(definition, platform);
  const { nats: link, logger, identity } = platform;
  const reach = (position: number) => reachPosition(platform.pool, position, READ_WAIT_MS);
  const server = new RequestServer({ link, logger, processId: identity.id, local, reach });
  // With the guards and interceptors that a service declares for all of its handlers.
  app.connectMicroservice({ strategy: server }, { inheritAppConfig: true });
  // Features start (onModuleInit, onApplicationBootstrap) before the first request can arrive.
  await app.init();
  await app.startAllMicroservices();
  await platform.nats.connection.flush();
  const { host, port } = await listen(app, platform);
  const stop = once(async () => {
    platform.health.addCheck('lifecycle', () =>
      Promise.reject(transient('SERVICE.STOPPING', 'the service stops')),
    );
    await server.close();
    await app.close();
    await Promise.all(hosted.map((other) => other.stop()));
    stopObserving();
    stopStreams();
    await closeTemporal();
    await closePlatform(platform);
  });
  return { app, platform, hosted, host, port, stop };
};

const startIn = async (
  definition: ServiceDefinition,
  options: PlatformOptions,
  startOthers: () => Promise<Process>,
): Promise<RunningService> => {
  const platform = await openPlatform(options);
  let hosted: readonly RunningService[] = [];
  try {
    const shared = await startOthers();
    ({ hosted } = shared);
    return await startOn(platform, definition, shared);
  } catch (error) {
    await Promise.all(hosted.map((other) => other.stop()));
    await closePlatform(platform);
    throw error;
  }
};

/** The telemetry of the process ends with its host. */
const TELEMETRY_OF_HOST = { stop: () => Promise.resolve() };

/** Starts all hosted services. If one fails, it stops the others and rejects. */
const startHosted = async (
  { hosts = [], cwd, logger }: StartOptions,
  local: LocalRequests,
): Promise<readonly RunningService[]> => {
  const started = await Promise.allSettled(
    hosts.map((definition) => {
      const { service, env } = definition;
      const options = { service, env, cwd, ...(logger ? { logger } : {}), telemetry: TELEMETRY_OF_HOST };
      return startIn(definition, options, () => Promise.resolve({ local, hosted: [] }));
    }),
  );
  const running = started.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const failed = started.find((one) => one.status === 'rejected');
  if (failed === undefined) return running;
  await Promise.all(running.map((other) => other.stop()));
  throw failed.reason;
};

/**
 * Starts a service in this process, after the services that it hosts. Resolves once it accepts
 * requests over NATS and HTTP.
 */
export const startService = (options: StartOptions): Promise<RunningService> => {
  const local = new LocalRequests((subject) => mayRequest(options.service, subject));
  return startIn(options, { ...options, local }, async () => ({ hosted: await startHosted(options, local) }));
};
