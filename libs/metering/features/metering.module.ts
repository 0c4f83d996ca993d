import { Module } from '@nestjs/common';
import type { Provider } from '@nestjs/common';
import type pg from 'pg';
import { findPrice } from '@antiphon/config';
import type { AntiphonConfig } from '@antiphon/config';
import type { EventStore, EventStorePg } from '@antiphon/event-store';
import type { Clock, Ids } from '@antiphon/kernel';
import type { PriceOf } from '@antiphon/metering-domain';
import type { Logger } from '@antiphon/observability';
import { CLOCK, CONFIG, DATABASE_POOL, EVENT_STORE, IDS, LOGGER } from '@antiphon/service-host';
import { createEndReservations } from './end-reservations/end-reservations.js';
import type { EndReservations } from './end-reservations/end-reservations.js';
import { createLedger } from './keep-ledger/ledger.js';
import type { BudgetLedger } from './keep-ledger/ledger.js';
import { MeteringLifecycle } from './metering.lifecycle.js';
import { ReadBudgetsController } from './read-budgets/read-budgets.controller.js';
import { createReadBudgets } from './read-budgets/read-budgets.js';
import { ReserveBudgetController } from './reserve-budget/reserve-budget.controller.js';
import { createReserveBudget } from './reserve-budget/reserve-budget.js';
import { SettleBudgetController } from './settle-budget/settle-budget.controller.js';
import { createSettleBudget } from './settle-budget/settle-budget.js';
import { createRollPeriods } from './sweep-budgets/roll-periods.js';
import { SweepBudgetsController } from './sweep-budgets/sweep-budgets.controller.js';
import {
  BUDGET_LEDGER,
  END_RESERVATIONS,
  READ_BUDGETS,
  RESERVE_BUDGET,
  ROLL_PERIODS,
  SETTLE_BUDGET,
} from './tokens.js';
import { UnfreezeScopeController } from './unfreeze-scope/unfreeze-scope.controller.js';

/** Prices as the configuration knows them, without the names that they were found by. */
export const pricesOf =
  (config: AntiphonConfig): PriceOf =>
  (provider, model) => {
    const found = findPrice(config, provider, model);
    if (found === null) return null;
    const { inputMicroUsdPerMtok, outputMicroUsdPerMtok } = found;
    return { inputMicroUsdPerMtok, outputMicroUsdPerMtok };
  };

const ledgerProvider: Provider = {
  provide: BUDGET_LEDGER,
  inject: [DATABASE_POOL, EVENT_STORE, CLOCK, IDS, LOGGER, CONFIG],
  useFactory: (
    pool: pg.Pool,
    store: EventStorePg,
    clock: Clock,
    ids: Ids,
    logger: Logger,
    config: AntiphonConfig,
  ): BudgetLedger =>
    createLedger({ pool, store, clock, ids, logger, limits: config.budgets, priceOf: pricesOf(config) }),
};

const endProvider: Provider = {
  provide: END_RESERVATIONS,
  inject: [DATABASE_POOL, EVENT_STORE, CLOCK, BUDGET_LEDGER],
  useFactory: (pool: pg.Pool, store: EventStore, clock: Clock, ledger: BudgetLedger) =>
    createEndReservations({ pool, store, clock, ledger }),
};

const reserveProvider: Provider = {
  provide: RESERVE_BUDGET,
  inject: [BUDGET_LEDGER, END_RESERVATIONS, CLOCK, CONFIG],
  useFactory: (
    ledger: BudgetLedger,
    endReservations: EndReservations,
    clock: Clock,
    config: AntiphonConfig,
  ) => createReserveBudget({ ledger, endReservations, clock, limits: config.budgets }),
};

const readProvider: Provider = {
  provide: READ_BUDGETS,
  inject: [DATABASE_POOL, CLOCK, CONFIG],
  useFactory: (pool: pg.Pool, clock: Clock, config: AntiphonConfig) =>
    createReadBudgets(pool, clock, config.budgets),
};

const rollProvider: Provider = {
  provide: ROLL_PERIODS,
  inject: [DATABASE_POOL, CLOCK, CONFIG, END_RESERVATIONS],
  useFactory: (pool: pg.Pool, clock: Clock, config: AntiphonConfig, endReservations: EndReservations) =>
    createRollPeriods({ pool, clock, limits: config.budgets, endReservations }),
};

/** Metering: admits model calls within their budgets and charges what they used, once each. */
@Module({
  controllers: [
    ReserveBudgetController,
    SettleBudgetController,
    ReadBudgetsController,
    UnfreezeScopeController,
    SweepBudgetsController,
  ],
  providers: [
    ledgerProvider,
    endProvider,
    reserveProvider,
    readProvider,
    rollProvider,
    { provide: SETTLE_BUDGET, inject: [BUDGET_LEDGER, END_RESERVATIONS], useFactory: createSettleBudget },
    MeteringLifecycle,
  ],
})
export class MeteringModule {}
