import type pg from 'pg';
import type { EventMetadata, EventStorePg } from '@antiphon/event-store';
import { isoTime } from '@antiphon/kernel';
import type { Clock, Ids } from '@antiphon/kernel';
import { currentContext, withSpan } from '@antiphon/observability';
import type { Logger, SpanStart } from '@antiphon/observability';
import type { BudgetLimits, LedgerAnswer, LedgerCommand, PriceOf } from '@antiphon/metering-domain';
import { createLedgerQueue } from './ledger-queue.js';
import type { LedgerQueueOptions } from './ledger-queue.js';
import { createRunBatch } from './run-batch.js';
import { runUntilKnown } from './run-until-known.js';
import { logCharges } from './token-record.js';

export interface LedgerOptions extends LedgerQueueOptions {
  /** How long a batch is tried again while the database is away. */
  readonly resolveWithinMs: number;
}

export interface LedgerDeps {
  readonly pool: pg.Pool;
  readonly store: EventStorePg;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly logger: Logger;
  /** The limits of the configuration; what is in force at an admission stands in its event. */
  readonly limits: BudgetLimits;
  readonly priceOf: PriceOf;
  readonly options?: Partial<LedgerOptions>;
}

/** Every change of a budget goes through here, one batch after another. */
export interface BudgetLedger {
  /**
   * Answers once the command's events are committed. Errors: `METERING.BUSY`, `LOG.UNAVAILABLE` (transient; asking
   * again is safe), `METERING.RESERVATION_CONFLICT`, `METERING.RESERVATION_ENDED` (conflict), `METERING.BOUND_TOO_LARGE`,
   * `METERING.NOT_EXPIRED`.
   */
  submit<C extends LedgerCommand>(workspace: string, command: C): Promise<AnswerOf<C['type']>>;
  close(): Promise<void>;
}

export type AnswerOf<T extends LedgerCommand['type']> =
  Extract<LedgerAnswer, { type: T }> extends never
    ? Extract<LedgerAnswer, { type: 'Settle' | 'Expire' }>
    : Extract<LedgerAnswer, { type: T }>;

/** Below the 10 s that a caller waits for an answer (contract). */
const DEFAULTS: LedgerOptions = {
  maxBatch: 256,
  maxQueued: 4_096,
  settleWithinMs: 20,
  resolveWithinMs: 5_000,
};

const metadataNow = (ids: Ids): EventMetadata => {
  const context = currentContext();
  return {
    correlationId: context?.correlationId ?? ids.next(),
    ...(context?.causationId === undefined ? {} : { causationId: context.causationId }),
    ...(context === undefined ? {} : { traceparent: context.traceparent }),
    service: 'metering',
  };
};

/** From when a command arrives until the batch that has it is committed. */
const spanOf = ({ type }: LedgerCommand): SpanStart => ({
  name: `ledger ${type.toLowerCase()}`,
  role: 'client',
  attributes: { 'db.system.name': 'postgresql', 'db.operation.name': type.toLowerCase() },
});

export const createLedger = (deps: LedgerDeps): BudgetLedger => {
  const { clock, ids, limits, logger, priceOf } = deps;
  const options = { ...DEFAULTS, ...deps.options };
  const runBatch = createRunBatch(deps);
  const run = runUntilKnown(
    // Time and limits are taken when the batch is decided: the period is that of the admission.
    (works) => runBatch(works, { limits, priceOf, now: isoTime(clock) }),
    options.resolveWithinMs,
  );
  const queue = createLedgerQueue(run, options);
  return {
    submit: <C extends LedgerCommand>(workspace: string, command: C) =>
      withSpan(spanOf(command), async () => {
        const decided = await queue.submit({ workspace, command, metadata: metadataNow(ids) });
        logCharges(logger, decided);
        return decided.answer as AnswerOf<C['type']>;
      }),
    close: () => queue.close(),
  };
};
