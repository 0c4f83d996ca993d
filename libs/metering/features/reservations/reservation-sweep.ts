import type { Logger } from '@antiphon/observability';
import { contextFrom, runWithContext } from '@antiphon/observability';
import type { EndReservations } from './end-reservations.js';

/**
 * Sweeps every `everyMs`, one sweep at a time. A failed sweep is logged, and the next one retries.
 */
export class ReservationSweep {
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(
    private readonly endReservations: Pick<EndReservations, 'sweep'>,
    private readonly logger: Logger,
    private readonly everyMs: number,
  ) {}

  start(): void {
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => {
      this.#running = runWithContext(contextFrom('metering'), () => this.#sweep()).finally(() =>
        this.start(),
      );
    }, this.everyMs);
    this.#timer.unref();
  }

  /** Stops the timer and waits for a running sweep. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#running;
  }

  async #sweep(): Promise<void> {
    try {
      const ended = await this.endReservations.sweep();
      if (ended > 0) this.logger.info({ ended }, 'expired reservations ended');
    } catch (error) {
      this.logger.error({ err: error }, 'reservation sweep failed');
    }
  }
}
