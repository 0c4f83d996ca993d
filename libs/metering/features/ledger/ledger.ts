import type { SettleBudgetReply } from '@antiphon/contracts/metering';
import type { EventMetadata, EventStorePg } from '@antiphon/event-store';
import { bug, isoTime } from '@antiphon/kernel';
import type { Clock, Ids } from '@antiphon/kernel';
import type { LedgerAnswer, LedgerCommand, PriceOf } from '@antiphon/metering-domain';
import { currentContext, withSpan } from '@antiphon/observability';
import type { Logger, SpanStart } from '@antiphon/observability';
import type pg from 'pg';
import { BatchRunner } from './cached-commit.js';
import type { LimitsOf, LookAgain } from './ledger-batch.js';
import { LedgerQueue, retryBatch } from './ledger-queue.js';
import type { LedgerQueueOptions } from './ledger-queue.js';
import { logCharges } from './usage-record.js';
import type { KnownReservation } from './find-outcome.js';

export interface LedgerOptions extends LedgerQueueOptions {
  /** Time in which a batch is retried while the database is away, in ms. */
  readonly resolveWithinMs: number;
}

export interface LedgerDeps {
  readonly pool: pg.Pool;
  readonly store: EventStorePg;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly logger: Logger;
  /** The event of an admission records the limits in force. */
  readonly limitsOf: LimitsOf;
  readonly priceOf: PriceOf;
  readonly options?: Partial<LedgerOptions>;
}

/** Serializes every change of a budget. */
export interface BudgetLedger {
  /**
   * Resolves once the command's events are committed. `METERING.BUSY` and `LOG.UNAVAILABLE` are
   * transient, and a retry is safe. Conflicts are `METERING.RESERVATION_CONFLICT`,
   * `METERING.RESERVATION_ENDED`, and `METERING.CALL_BEGUN` by `lookAgain`. Other errors are
   * `METERING.BOUND_TOO_LARGE`, `METERING.NOT_EXPIRED`.
   */
  submit<C extends LedgerCommand>(
    workspace: string,
    command: C,
    lookAgain?: LookAgain,
  ): Promise<AnswerOf<C['type']>>;
  /** Returns a reservation from the cache. Another process may have ended it since. */
  cached(workspace: string, reservationId: string): KnownReservation | undefined;
  close(): Promise<void>;
}

export type AnswerOf<T extends LedgerCommand['type']> =
  Extract<LedgerAnswer, { type: T }> extends never
    ? Extract<LedgerAnswer, { type: 'Settle' | 'Expire' }>
    : Extract<LedgerAnswer, { type: T }>;

/** Defaults below the 10 s that a caller waits for a response. */
const DEFAULTS: LedgerOptions = {
  maxBatch: 256,
  maxQueued: 4_096,
  settleWithinMs: 20,
  resolveWithinMs: 5_000,
};

/** Returns the metadata of an event that the request in progress causes. */
export const metadataNow = (ids: Ids): EventMetadata => {
  const context = currentContext();
  return {
    correlationId: context?.correlationId ?? ids.next(),
    ...(context?.causationId === undefined ? {} : { causationId: context.causationId }),
    ...(context === undefined ? {} : { traceparent: context.traceparent }),
    service: 'metering',
  };
};

/** Starts the span from the arrival of a command to the commit of its batch. */
const spanOf = ({ type }: LedgerCommand): SpanStart => ({
  name: `ledger ${type.toLowerCase()}`,
  role: 'client',
  attributes: { 'db.system.name': 'postgresql', 'db.operation.name': type.toLowerCase() },
});

export const createLedger = (deps: LedgerDeps): BudgetLedger => {
  const { clock, ids, limitsOf, logger, priceOf } = deps;
  const options = { ...DEFAULTS, ...deps.options };
  const batches = new BatchRunner(deps);
  const run = retryBatch(
    // The time is read when the batch is decided: the period is that of the admission.
    (works) => batches.run(works, { limitsOf, priceOf, now: isoTime(clock) }),
    options.resolveWithinMs,
  );
  const queue = new LedgerQueue(run, options);
  return {
    submit: <C extends LedgerCommand>(workspace: string, command: C, lookAgain?: LookAgain) =>
      withSpan(spanOf(command), async () => {
        const decided = await queue.submit({
          workspace,
          command,
          metadata: metadataNow(ids),
          ...(lookAgain ? { lookAgain } : {}),
        });
        logCharges(logger, decided);
        return decided.answer as AnswerOf<C['type']>;
      }),
    cached: (workspace, reservationId) => batches.cached(workspace, reservationId),
    close: () => queue.close(),
  };
};

type Ended = Extract<LedgerAnswer, { type: 'Settle' | 'Expire' }>;

/** Returns the status of a reservation after a settlement by any caller. */
export const statusOf = ({ status }: Ended, reservationId: string): SettleBudgetReply['status'] => {
  if (status === 'reserved') throw bug('METERING.NOT_SETTLED', `reservation ${reservationId} stayed open`);
  return status;
};
