import { Module } from '@nestjs/common';
import type { DynamicModule, Provider } from '@nestjs/common';
import type { Platform } from './platform.js';
import { ProbesController, healthRequestsOf } from './probes.controller.js';
import * as tokens from './tokens.js';

const providersOf = (platform: Platform): Provider[] => [
  { provide: tokens.EVENT_STORE, useValue: platform.eventStore },
  { provide: tokens.LEASE_STORE, useValue: platform.leaseStore },
  { provide: tokens.DATABASE_POOL, useValue: platform.pool },
  { provide: tokens.NATS, useValue: platform.nats },
  { provide: tokens.REQUESTS, useValue: platform.requests },
  { provide: tokens.CONFIG, useValue: platform.config },
  { provide: tokens.LOGGER, useValue: platform.logger },
  { provide: tokens.CLOCK, useValue: platform.clock },
  { provide: tokens.IDS, useValue: platform.ids },
  { provide: tokens.SERVICE_IDENTITY, useValue: platform.identity },
  { provide: tokens.HEALTH, useValue: platform.health },
  { provide: tokens.ENVIRONMENT, useValue: platform.environment },
];

/** Provides the platform by token, and the probes over HTTP and NATS, in every service. */
@Module({})
export class PlatformModule {
  static forService(platform: Platform): DynamicModule {
    const providers = providersOf(platform);
    return {
      module: PlatformModule,
      global: true,
      controllers: [ProbesController, healthRequestsOf(platform.identity.service)],
      providers,
      exports: providers,
    };
  }
}
