import { sleep } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { createToken } from '@antiphon/service-host';
import type { ChannelWork } from './channel-work.js';
import type { DeliveryRef } from './delivery-streams.js';

/** Takes deliveries to their end in the background. */
export interface DeliveryTimers {
  /** Starts the work for a delivery, or joins the work that runs. */
  start(ref: DeliveryRef): void;
  stop(): Promise<void>;
}

export const DELIVERY_TIMERS = createToken<DeliveryTimers>('DELIVERY_TIMERS');

/** Delay before a failed step is repeated, ms. */
const RETRY_MS = 1_000;

/** Takes deliveries to their end in this process, for an installation without Temporal. */
export class LocalDeliveries implements DeliveryTimers {
  private readonly stopping = new AbortController();
  private readonly running = new Map<string, Promise<void>>();

  constructor(
    private readonly work: Pick<ChannelWork, 'advance'>,
    private readonly logger: Logger,
  ) {}

  start(ref: DeliveryRef): void {
    if (this.running.has(ref.messageId)) return;
    const run = this.run(ref).finally(() => this.running.delete(ref.messageId));
    this.running.set(ref.messageId, run);
  }

  async stop(): Promise<void> {
    this.stopping.abort(new Error('the service stops'));
    await Promise.all(this.running.values());
  }

  private async run(ref: DeliveryRef): Promise<void> {
    const { signal } = this.stopping;
    while (!signal.aborted) {
      const progress = await this.work.advance(ref, signal).catch((error: unknown) => {
        if (!signal.aborted)
          this.logger.warn({ err: error, messageId: ref.messageId }, 'channel delivery interrupted');
        return { over: false, waitMs: RETRY_MS };
      });
      if (progress.over) return;
      await sleep(progress.waitMs, signal).catch(() => undefined);
    }
  }
}
