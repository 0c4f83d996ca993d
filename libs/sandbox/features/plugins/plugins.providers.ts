import type { Provider } from '@nestjs/common';
import type { EventStore, EventStorePg } from '@antiphon/event-store';
import type { Clock, Ids } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { CLOCK, DATABASE_POOL, EVENT_STORE, IDS, LOGGER, REQUESTS } from '@antiphon/service-host';
import type { RequestClient } from '@antiphon/messaging';
import type pg from 'pg';
import { createReadSecrets } from '../http/request-secrets.js';
import type { ReadSecrets } from '../http/request-secrets.js';
import { PluginStore } from '../store/plugin-store.js';
import { PluginRegistry } from './plugin-registry.js';

/** Nest's token for the data of workspaces that plug-ins use. */
export const PLUGIN_DATA = Symbol('PluginData');

export interface PluginData {
  readonly registry: PluginRegistry;
  readonly store: PluginStore;
  readonly readSecrets: ReadSecrets;
}

/** Facts about plug-ins that workspaces add, and the stores of all plug-ins. */
export const pluginProviders: Provider[] = [
  {
    provide: PluginRegistry,
    inject: [DATABASE_POOL, EVENT_STORE, IDS, CLOCK],
    useFactory: (pool: pg.Pool, store: EventStore & EventStorePg, ids: Ids, clock: Clock) =>
      new PluginRegistry({ pool, store, ids, clock }),
  },
  {
    provide: PluginStore,
    inject: [DATABASE_POOL, LOGGER],
    useFactory: (pool: pg.Pool, logger: Logger) => new PluginStore(pool, logger),
  },
  {
    provide: PLUGIN_DATA,
    inject: [PluginRegistry, PluginStore, REQUESTS],
    useFactory: (registry: PluginRegistry, store: PluginStore, requests: RequestClient): PluginData => ({
      ...{ registry, store, readSecrets: createReadSecrets(requests) },
    }),
  },
];
