import type { DynamicModule, Type } from '@nestjs/common';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { isLoopback } from '@antiphon/config';
import { invalid, transient } from '@antiphon/kernel';
import type { ServiceName } from '@antiphon/contracts/messaging';
import { RequestServer, maintainStreams } from '@antiphon/messaging';
import type { StreamName } from '@antiphon/messaging';
import { addPlatformChecks, addStreamCheck, addTemporalCheck, observePlatform } from './dependency-checks.js';
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
  /** HTTP address. */
  readonly host: string;
  readonly port: number;
  /**
   * Shuts down gracefully: refuses new work, finishes work in progress, closes. Safe to call twice.
   */
  stop(): Promise<void>;
}

export type StartOptions = ServiceDefinition & Omit<PlatformOptions, 'service'>;

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
  configureHttp(app, definition.service, definition.http);
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

const startOn = async (platform: Platform, definition: ServiceDefinition): Promise<RunningService> => {
  addPlatformChecks(platform);
  const stopObserving = observePlatform(platform);
  const closeTemporal = definition.temporal ? addTemporalCheck(platform) : () => Promise.resolve();
  const stopStreams = await maintainOwnStreams(platform, definition.streams ?? []);
  const app = await createApp(definition, platform);
  const server = new RequestServer({ link: platform.nats, logger: platform.logger });
  app.connectMicroservice({ strategy: server });
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
    stopObserving();
    stopStreams();
    await closeTemporal();
    await closePlatform(platform);
  });
  return { app, platform, host, port, stop };
};

/** Starts a service in this process; resolves once it accepts requests over NATS and HTTP. */
export const startService = async (options: StartOptions): Promise<RunningService> => {
  const platform = await openPlatform(options);
  try {
    return await startOn(platform, options);
  } catch (error) {
    await closePlatform(platform);
    throw error;
  }
};
