import { Inject, Injectable } from '@nestjs/common';
import type { OnApplicationBootstrap, OnApplicationShutdown } from '@nestjs/common';
import { createConsumerHost } from '@antiphon/messaging';
import type { ConsumerHost, NatsLink } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import { LOGGER, NATS } from '@antiphon/service-host';
import type { EndReservations } from './end-reservations/end-reservations.js';
import { createSweepRunner } from './end-reservations/sweep-runner.js';
import type { SweepRunner } from './end-reservations/sweep-runner.js';
import type { BudgetLedger } from './keep-ledger/ledger.js';
import { observeBudgets } from './read-budgets/observe-budgets.js';
import type { ReadBudgets } from './read-budgets/read-budgets.js';
import type { SettleBudget } from './settle-budget/settle-budget.js';
import { settleCalls } from './settle-calls/settle-calls.consumer.js';
import { BUDGET_LEDGER, END_RESERVATIONS, READ_BUDGETS, SETTLE_BUDGET } from './tokens.js';

const SWEEP_EVERY_MS = 15_000;

/** Starts what metering does by itself, and stops it in the order of need: who asks first, then the ledger. */
@Injectable()
export class MeteringLifecycle implements OnApplicationBootstrap, OnApplicationShutdown {
  readonly #sweeps: SweepRunner;
  readonly #consumers: ConsumerHost;
  #unobserve: () => void = () => undefined;

  constructor(
    @Inject(BUDGET_LEDGER) private readonly ledger: BudgetLedger,
    @Inject(SETTLE_BUDGET) private readonly settle: SettleBudget,
    @Inject(READ_BUDGETS) private readonly readBudgets: ReadBudgets,
    @Inject(END_RESERVATIONS) endReservations: EndReservations,
    @Inject(NATS) link: NatsLink,
    @Inject(LOGGER) logger: Logger,
  ) {
    this.#sweeps = createSweepRunner(endReservations, logger, SWEEP_EVERY_MS);
    this.#consumers = createConsumerHost({ link, logger });
  }

  onApplicationBootstrap(): void {
    this.#consumers.run(settleCalls, this.settle);
    this.#sweeps.start();
    this.#unobserve = observeBudgets(this.readBudgets);
  }

  async onApplicationShutdown(): Promise<void> {
    this.#unobserve();
    await Promise.all([this.#consumers.stop(), this.#sweeps.stop()]);
    await this.ledger.close();
  }
}
