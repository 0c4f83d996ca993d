import { Inject, Injectable } from '@nestjs/common';
import type { OnApplicationBootstrap, OnApplicationShutdown } from '@nestjs/common';
import type { Logger } from '@antiphon/observability';
import { LOGGER } from '@antiphon/service-host';
import type { EndReservations } from './end-reservations/end-reservations.js';
import { createSweepRunner } from './end-reservations/sweep-runner.js';
import type { SweepRunner } from './end-reservations/sweep-runner.js';
import type { BudgetLedger } from './keep-ledger/ledger.js';
import { BUDGET_LEDGER, END_RESERVATIONS } from './tokens.js';

const SWEEP_EVERY_MS = 15_000;

/** Starts what metering does by itself, and stops it in the order of need: who asks first, then the ledger. */
@Injectable()
export class MeteringLifecycle implements OnApplicationBootstrap, OnApplicationShutdown {
  readonly #sweeps: SweepRunner;

  constructor(
    @Inject(BUDGET_LEDGER) private readonly ledger: BudgetLedger,
    @Inject(END_RESERVATIONS) endReservations: EndReservations,
    @Inject(LOGGER) logger: Logger,
  ) {
    this.#sweeps = createSweepRunner(endReservations, logger, SWEEP_EVERY_MS);
  }

  onApplicationBootstrap(): void {
    this.#sweeps.start();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.#sweeps.stop();
    await this.ledger.close();
  }
}
