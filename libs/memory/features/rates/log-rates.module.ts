import { Inject, Injectable, Module } from '@nestjs/common';
import type { OnApplicationBootstrap, OnApplicationShutdown } from '@nestjs/common';
import { onLogNotification } from '@antiphon/messaging';
import { DATABASE_POOL, LOGGER, NATS, provide } from '@antiphon/service-host';
import { FollowLogRates } from './follow-log-rates.js';
import { ReadLogRates } from './read-log-rates.handler.js';

/** Time within which notifications wake the projection once, ms. Only people read its rows. */
const DEBOUNCE_MS = 250;

/** Runs the projection of rates for the lifetime of the service. */
@Injectable()
class LogRatesHost implements OnApplicationBootstrap, OnApplicationShutdown {
  readonly #stopping = new AbortController();
  #following: Promise<void> | undefined;

  constructor(@Inject(FollowLogRates) private readonly rates: FollowLogRates) {}

  onApplicationBootstrap(): void {
    this.#following = this.rates.follow(this.#stopping.signal);
  }

  async onApplicationShutdown(): Promise<void> {
    this.#stopping.abort();
    await this.#following;
  }
}

/** Counts the events of each workspace, next to the relay, which reads them all. */
@Module({
  controllers: [ReadLogRates],
  providers: [
    provide(
      FollowLogRates,
      [DATABASE_POOL, NATS, LOGGER],
      (pool, nats, logger) =>
        new FollowLogRates({
          ...{ pool, logger },
          subscribe: (wake, categories) =>
            onLogNotification(nats, wake, { debounceMs: DEBOUNCE_MS, categories }),
        }),
    ),
    LogRatesHost,
  ],
})
export class LogRatesModule {}
