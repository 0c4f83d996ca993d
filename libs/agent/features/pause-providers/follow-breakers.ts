import { setTimeout as sleep } from 'node:timers/promises';
import { BREAKER_NOTIFICATION_SUBJECT } from '@antiphon/contracts/agent';
import type { NatsLink } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import type { ProviderBreakers } from './provider-breakers.js';

/** Between two looks at what other processes have found out, ms. */
const LOOK_MS = 1_000;

export interface Following {
  readonly breakers: Pick<ProviderBreakers, 'refresh'>;
  readonly nats: NatsLink;
  readonly logger: Logger;
}

/** Keeps what this process knows of paused providers up with the others, at hints and every second, until the signal. */
export const followBreakers = async (
  { breakers, nats, logger }: Following,
  signal: AbortSignal,
): Promise<void> => {
  let failing = false;
  const look = async (): Promise<void> => {
    try {
      await breakers.refresh();
      failing = false;
    } catch (error) {
      // Once an outage, not once a look.
      if (!failing)
        logger.warn({ err: error }, 'paused providers could not be looked up; they will be again');
      failing = true;
    }
  };
  const subscription = nats.connection.subscribe(BREAKER_NOTIFICATION_SUBJECT, {
    callback: () => void look(),
  });
  while (!signal.aborted) {
    await look();
    await sleep(LOOK_MS, undefined, { signal }).catch(() => undefined);
  }
  subscription.unsubscribe();
};
