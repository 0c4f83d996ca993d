import type { Provider } from '@nestjs/common';
import type { Logger } from '@antiphon/observability';
import { DATABASE_POOL, LOGGER } from '@antiphon/service-host';
import type pg from 'pg';
import { ChannelSends } from './channel-sends.js';

/** Requests to platforms of channels. */
export const channelProviders: Provider[] = [
  {
    provide: ChannelSends,
    inject: [DATABASE_POOL, LOGGER],
    useFactory: (pool: pg.Pool, logger: Logger) => new ChannelSends(pool, logger),
  },
];
