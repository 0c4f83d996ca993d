import type { DynamicModule, Type } from '@nestjs/common';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { isLoopback } from '@antiphon/config';
import { invalid, transient } from '@antiphon/kernel';
import type { ServiceName } from '@antiphon/contracts/messaging';
import { RequestServer, maintainStreams, openJetStreamManager } from '@antiphon/messaging';
import type { StreamName } from '@antiphon/messaging';
import { checkDatabase } from './database-check.js';
import { addRequestContext, createHttpAdapter } from './http-server.js';
import type { HttpOptions } from './http-server.js';
import { nestLogger } from './nest-logger.js';
import { observePlatform } from './observe-platform.js';
import { closePlatform, openPlatform } from './platform.js';
import type { Platform, PlatformOptions } from './platform.js';
import { PlatformModule } from './platform.module.js';
import { ProblemFilter } from './problem.filter.js';
import { addTemporalCheck } from './temporal-check.js';

export interface ServiceDefinition {
  readonly service: ServiceName;
  /** The service's own module; it finds the platform by the tokens. */
  readonly module: Type | DynamicModule;
  readonly http?: HttpOptions;
  /** True for the service that works with Temporal: its server's health is part of this service's. */
  readonly temporal?: boolean;
  /** JetStream streams that the service makes and keeps in being; JetStream's health is part of its own then. */
  readonly streams?: readonly StreamName[];
  /** Called before the service listens: hooks on Fastify (`app.getHttpAdapter().getInstance()`) and its HTTP server. */
  readonly configure?: (app: NestFastifyApplication, platform: Platform) => void | Promise<void>;
}

export interface RunningService {
  readonly app: NestFastifyApplication;
  readonly platform: Platform;
  /** Where HTTP listens. */
  readonly host: string;
  readonly port: number;
  /** Takes nothing new, finishes what is at work, closes everything; safe to call twice. */
  stop(): Promise<void>;
}

export type StartOptions = ServiceDefinition & Omit<PlatformOptions, 'service'>;

const rootModule = (definition: ServiceDefinition, platform: Platform): DynamicModule => {
  @Module({})
  class Root {}
  return { module: Root, imports: [PlatformModule.forService(platform), definition.module] };
};

const addPlatformChecks = (platform: Platform): void => {
  platform.health.addCheck('postgresql', () => checkDatabase(platform.pool));
  platform.health.addCheck('nats', async () => {
    if (!platform.nats.isConnected()) throw transient('MESSAGING.UNAVAILABLE', 'NATS cannot be reached');
    await platform.nats.connection.flush();
  });
};

/** Keeps the service's streams, and checks by each of them that JetStream answers; answers how to stop. */
const keepOwnStreams = async (platform: Platform, names: readonly StreamName[]): Promise<() => void> => {
  if (names.length === 0) return () => {};
  const manager = await openJetStreamManager(platform.nats.connection);
  platform.health.addCheck('jetstream', async () => {
    for (const name of names) await manager.streams.info(name);
  });
  return maintainStreams(platform.nats, names, platform.logger);
};

const createApp = async (
  definition: ServiceDefinition,
  platform: Platform,
): Promise<NestFastifyApplication> => {
  const { logger } = platform;
  const adapter = createHttpAdapter(definition.service, logger, definition.http);
  const app = await NestFactory.create<NestFastifyApplication>(rootModule(definition, platform), adapter, {
    logger: nestLogger(logger),
    abortOnError: false,
  });
  addRequestContext(app, definition.service);
  app.useGlobalFilters(new ProblemFilter(logger));
  await definition.configure?.(app, platform);
  return app;
};

/** Clients of other machines reach only a gateway that asks for a token; other services answer nobody but probes. */
const assertGuarded = ({ identity, config }: Platform, host: string): void => {
  if (identity.service !== 'gateway' || config.gateway.token !== null || isLoopback(host)) return;
  throw invalid(
    'GATEWAY.TOKEN_MISSING',
    `the gateway would listen on ${host} for whoever comes: set ANTIPHON_GATEWAY_TOKEN or gateway.token`,
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
  const unobserve = observePlatform(platform);
  const closeTemporal = definition.temporal ? addTemporalCheck(platform) : () => Promise.resolve();
  const endStreams = await keepOwnStreams(platform, definition.streams ?? []);
  const app = await createApp(definition, platform);
  const server = new RequestServer({ link: platform.nats, logger: platform.logger });
  app.connectMicroservice({ strategy: server });
  // Features have started (their onModuleInit, onApplicationBootstrap) before the first request can arrive.
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
    unobserve();
    endStreams();
    await closeTemporal();
    await closePlatform(platform);
  });
  return { app, platform, host, port, stop };
};

/** Starts a service inside this process and answers once it takes requests over NATS and HTTP. */
export const startService = async (options: StartOptions): Promise<RunningService> => {
  const platform = await openPlatform(options);
  try {
    return await startOn(platform, options);
  } catch (error) {
    await closePlatform(platform);
    throw error;
  }
};
