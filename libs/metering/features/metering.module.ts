import { Inject, Injectable, Module } from '@nestjs/common';
import type { OnApplicationBootstrap, OnApplicationShutdown, Provider } from '@nestjs/common';
import type pg from 'pg';
import { budgetLimitsOf, findPrice } from '@antiphon/config';
import type { AntiphonConfig } from '@antiphon/config';
import { createWorkStarts } from '@antiphon/database';
import { PastReads, SnapshotMaker } from '@antiphon/event-store';
import type { EventStore, EventStorePg } from '@antiphon/event-store';
import type { Clock, Ids } from '@antiphon/kernel';
import { createConsumerHost, onLogNotification } from '@antiphon/messaging';
import type { ConsumerHost, NatsLink } from '@antiphon/messaging';
import type { PriceOf } from '@antiphon/metering-domain';
import type { Logger } from '@antiphon/observability';
import { CLOCK, CONFIG, DATABASE_POOL, EVENT_STORE, IDS, LOGGER, NATS } from '@antiphon/service-host';
import { ReadAgentUsage, ReadSessionCosts, SetBudgetLimit } from './budgets/agent-budgets.handler.js';
import { BudgetLimitStore } from './budgets/budget-limit-store.js';
import { BudgetRuleStore } from './budgets/budget-rule-store.js';
import {
  ExpireReservations,
  RollBudgetPeriods,
  UnfreezeBudget,
} from './reservations/operate-budgets.handler.js';
import { UsageProjection } from './budgets/usage-projection.js';
import { ReadBudgets, observeBudgets } from './budgets/read-budgets.handler.js';
import { DeadLetters } from './dead-letters.handler.js';
import { DatabaseClock } from './database-clock.js';
import { createLedger } from './ledger/ledger.js';
import type { BudgetLedger } from './ledger/ledger.js';
import type { LimitsOf } from './ledger/ledger-batch.js';
import {
  BUDGET_LIMIT_STORE,
  BUDGET_LEDGER,
  END_RESERVATIONS,
  PAST_READS,
  USAGE_PROJECTION,
  BUDGET_RULE_STORE,
} from './metering.tokens.js';
import { meteringProjections } from './budgets/projections.js';
import { CorrectCharge } from './reservations/correct-charge.handler.js';
import { createEndReservations } from './reservations/end-reservations.js';
import type { EndReservations } from './reservations/end-reservations.js';
import { ReservationSweep } from './reservations/reservation-sweep.js';
import { ReserveBudget } from './reservations/reserve-budget.handler.js';
import { SettleBudget, settleCalls } from './reservations/settle-budget.handler.js';

const SWEEP_EVERY_MS = 15_000;

/** Returns the price look-up of a configuration. */
export const pricesOf =
  (config: AntiphonConfig): PriceOf =>
  (provider, model, kind) =>
    findPrice(config, provider, model, kind);

/** Replaces the process's clock in this module. */
const clockProvider: Provider = {
  provide: CLOCK,
  inject: [DATABASE_POOL],
  useFactory: (pool: pg.Pool): Promise<Clock> => DatabaseClock.open(pool),
};

const ledgerProvider: Provider = {
  provide: BUDGET_LEDGER,
  inject: [DATABASE_POOL, EVENT_STORE, CLOCK, IDS, LOGGER, CONFIG, BUDGET_LIMIT_STORE],
  useFactory: (
    pool: pg.Pool,
    store: EventStorePg,
    clock: Clock,
    ids: Ids,
    logger: Logger,
    config: AntiphonConfig,
    limitStore: BudgetLimitStore,
  ): BudgetLedger => {
    const limitsOf: LimitsOf = (workspace) => limitStore.limitsOf(workspace);
    return createLedger({ pool, store, clock, ids, logger, limitsOf, priceOf: pricesOf(config) });
  },
};

const limitStoreProvider: Provider = {
  provide: BUDGET_LIMIT_STORE,
  inject: [DATABASE_POOL, EVENT_STORE, CLOCK, IDS, LOGGER, CONFIG],
  useFactory: (
    pool: pg.Pool,
    store: EventStorePg,
    clock: Clock,
    ids: Ids,
    logger: Logger,
    config: AntiphonConfig,
  ) => {
    const configured: LimitsOf = (workspace) => budgetLimitsOf(config, workspace);
    return new BudgetLimitStore({ configured, pool, store, clock, ids, logger });
  },
};

const ruleStoreProvider: Provider = {
  provide: BUDGET_RULE_STORE,
  inject: [DATABASE_POOL, LOGGER, CONFIG],
  useFactory: (pool: pg.Pool, logger: Logger, config: AntiphonConfig) => {
    const configured: LimitsOf = (workspace) => budgetLimitsOf(config, workspace);
    return new BudgetRuleStore({ configured, priceOf: pricesOf(config), pool, logger });
  },
};

const pastProvider: Provider = {
  provide: PAST_READS,
  inject: [DATABASE_POOL],
  useFactory: (pool: pg.Pool) => new PastReads({ pool, definitions: meteringProjections }),
};

const usageProjectionProvider: Provider = {
  provide: USAGE_PROJECTION,
  inject: [DATABASE_POOL, NATS, LOGGER],
  useFactory: (pool: pg.Pool, nats: NatsLink, logger: Logger) =>
    new UsageProjection({
      ...{ pool, logger },
      subscribe: (wake, categories) => onLogNotification(nats, wake, { categories }),
    }),
};

const endReservationsProvider: Provider = {
  provide: END_RESERVATIONS,
  inject: [DATABASE_POOL, EVENT_STORE, CLOCK, BUDGET_LEDGER],
  useFactory: (pool: pg.Pool, store: EventStore, clock: Clock, ledger: BudgetLedger) =>
    createEndReservations({ pool, store, clock, ledger }),
};

/** Background work that runs until its signal aborts. */
interface Follower {
  follow(signal: AbortSignal): Promise<void>;
}

const FOLLOWERS = Symbol('Followers');
const followersProvider: Provider = {
  provide: FOLLOWERS,
  inject: [DATABASE_POOL, LOGGER, BUDGET_LIMIT_STORE, BUDGET_RULE_STORE, USAGE_PROJECTION],
  useFactory: (pool: pg.Pool, logger: Logger, ...followers: Follower[]): readonly Follower[] => [
    ...followers,
    new SnapshotMaker({ pool, logger, definitions: meteringProjections }),
  ],
};

const CONSUMERS = Symbol('CONSUMERS');
const consumersProvider: Provider = {
  provide: CONSUMERS,
  inject: [NATS, LOGGER, DATABASE_POOL],
  useFactory: (link: NatsLink, logger: Logger, pool: pg.Pool) =>
    createConsumerHost({ link, logger, starts: createWorkStarts(pool) }),
};

/** Starts metering's background work, and stops it before the ledger. */
@Injectable()
export class MeteringLifecycle implements OnApplicationBootstrap, OnApplicationShutdown {
  readonly #sweep: ReservationSweep;
  #stopObserving: () => void = () => undefined;
  readonly #stopping = new AbortController();
  #following: Promise<unknown> | undefined;

  constructor(
    @Inject(BUDGET_LEDGER) private readonly ledger: BudgetLedger,
    @Inject(SettleBudget) private readonly settleBudget: SettleBudget,
    @Inject(ReadBudgets) private readonly readBudgets: ReadBudgets,
    @Inject(FOLLOWERS) private readonly followers: readonly Follower[],
    @Inject(END_RESERVATIONS) endReservations: EndReservations,
    @Inject(PAST_READS) private readonly past: PastReads,
    @Inject(CONSUMERS) private readonly consumers: ConsumerHost,
    @Inject(LOGGER) logger: Logger,
  ) {
    this.#sweep = new ReservationSweep(endReservations, logger, SWEEP_EVERY_MS);
  }

  onApplicationBootstrap(): void {
    this.consumers.run(settleCalls, this.settleBudget);
    this.#sweep.start();
    this.#following = Promise.all(this.followers.map((follower) => follower.follow(this.#stopping.signal)));
    this.#stopObserving = observeBudgets(this.readBudgets);
  }

  async onApplicationShutdown(): Promise<void> {
    this.#stopObserving();
    this.#stopping.abort();
    await Promise.all([this.consumers.stop(), this.#sweep.stop(), this.#following]);
    await this.past.close();
    await this.ledger.close();
  }
}

/** Admits model calls within their budgets and charges their usage once. */
@Module({
  controllers: [
    ReserveBudget,
    SettleBudget,
    CorrectCharge,
    ReadBudgets,
    UnfreezeBudget,
    SetBudgetLimit,
    ReadAgentUsage,
    ReadSessionCosts,
    ExpireReservations,
    RollBudgetPeriods,
    DeadLetters,
  ],
  providers: [
    clockProvider,
    ledgerProvider,
    limitStoreProvider,
    ruleStoreProvider,
    followersProvider,
    endReservationsProvider,
    pastProvider,
    usageProjectionProvider,
    consumersProvider,
    MeteringLifecycle,
    SettleBudget,
    ReadBudgets,
  ],
})
export class MeteringModule {}
