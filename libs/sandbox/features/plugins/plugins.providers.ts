import type { Provider } from '@nestjs/common';
import type { EventStore, EventStorePg } from '@antiphon/event-store';
import type { Clock, Ids } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { CLOCK, DATABASE_POOL, EVENT_STORE, IDS, LOGGER } from '@antiphon/service-host';
import type pg from 'pg';
import { PluginStore } from '../store/plugin-store.js';
import { PluginRegistry } from './plugin-registry.js';

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
];
