import { samplesSubject, type SamplesStored } from '@antiphon/contracts/agent';
import type { NatsLink } from '@antiphon/messaging';

/** Tells the gateways of new samples. A lost notification only delays them by one interval. */
export const announceSamples =
  ({ isConnected, connection }: NatsLink) =>
  (stored: SamplesStored): void => {
    if (isConnected() && !connection.isDraining())
      connection.publish(samplesSubject(stored.workspace), JSON.stringify(stored));
  };
