import type { TokenUsage } from '@antiphon/kernel';
import type { BudgetEvent } from '@antiphon/contracts/metering';
import { amountOf } from '@antiphon/metering-domain';
import type { Logger } from '@antiphon/observability';
import type { Decided } from './ledger-queue.js';

/** Usage record of one model call. `cost` is in US dollars, or null if the model has no price. */
export interface UsageRecord {
  readonly timestamp: string;
  readonly session_key: string;
  readonly agent_id: string;
  readonly provider: string;
  readonly model: string;
  readonly input: number;
  readonly output: number;
  /** Parts of the input that a prompt cache read and wrote, if there are any. */
  readonly cache_read?: number | undefined;
  readonly cache_write?: number | undefined;
  readonly cost: number | null;
}

type Reserved = NonNullable<Decided['reserved']>;

const record = (reserved: Reserved, at: string, usage: TokenUsage, microUsd: number): UsageRecord => ({
  timestamp: at,
  session_key: reserved.sessionKey,
  agent_id: reserved.agentId,
  provider: reserved.provider,
  model: reserved.model,
  input: usage.inputTokens,
  output: usage.outputTokens,
  ...(usage.cacheReadTokens ? { cache_read: usage.cacheReadTokens } : {}),
  ...(usage.cacheWriteTokens ? { cache_write: usage.cacheWriteTokens } : {}),
  cost: reserved.price === null ? null : microUsd / 1e6,
});

/** Returns the record of a charge, or undefined for an event without one. */
export const usageRecordOf = (reserved: Reserved, event: BudgetEvent): UsageRecord | undefined => {
  switch (event.type) {
    case 'BudgetSettled':
      return record(reserved, event.data.settledAt, event.data, event.data.microUsd);
    case 'BudgetExpired': {
      const bound = { inputTokens: reserved.inputBound, outputTokens: reserved.outputBound };
      return record(reserved, event.data.expiredAt, bound, event.data.microUsd);
    }
    case 'BudgetCorrected':
      return record(reserved, event.data.correctedAt, event.data, event.data.microUsd);
    case 'BudgetReserved':
    case 'BudgetReleased':
    case 'BudgetScopeFrozen':
    case 'BudgetScopeUnfrozen':
      return undefined;
  }
};

const isEstimated = (event: BudgetEvent): boolean =>
  event.type === 'BudgetExpired' || (event.type === 'BudgetSettled' && event.data.estimated);

/** Returns the usage and the bound of a charge over its bound, or undefined. */
const excessOf = ({ tokens, microUsd }: Reserved, event: BudgetEvent) => {
  if (event.type !== 'BudgetSettled' && event.type !== 'BudgetCorrected') return undefined;
  const used = amountOf(event.data);
  if (used.tokens <= tokens && used.microUsd <= microUsd) return undefined;
  return {
    boundTokens: tokens,
    usedTokens: used.tokens,
    boundMicroUsd: microUsd,
    usedMicroUsd: used.microUsd,
  };
};

/** Logs each committed charge, and warns of a charge over its bound and of a frozen scope. */
export const logCharges = (logger: Logger, { events, reserved }: Decided): void => {
  if (reserved === null) return;
  const { reservationId, sessionId, turnId, attempt } = reserved;
  const ids = { reservationId, sessionId, turnId, attempt };
  for (const event of events) {
    const charge = usageRecordOf(reserved, event);
    const excess = excessOf(reserved, event);
    if (charge)
      logger.info(
        { ...charge, ...ids, event: event.type, estimated: isEstimated(event) },
        'model call charged',
      );
    if (excess) logger.warn({ ...excess, ...ids }, 'model call exceeded its bound');
    if (event.type === 'BudgetScopeFrozen') logger.warn({ ...event.data, ...ids }, 'budget scope frozen');
  }
};
