import type { BudgetEvent } from '@antiphon/contracts/metering';
import { amountOf } from '@antiphon/metering-domain';
import type { Logger } from '@antiphon/observability';
import type { Decided } from './ledger-queue.js';

/** The seeds' audit entry of one model call; `cost` in US dollars, null when the model has no price. */
export interface TokenRecord {
  readonly timestamp: string;
  readonly session_key: string;
  readonly agent_id: string;
  readonly provider: string;
  readonly model: string;
  readonly input: number;
  readonly output: number;
  readonly cost: number | null;
}

type Reserved = NonNullable<Decided['reserved']>;

const record = (
  reserved: Reserved,
  at: string,
  input: number,
  output: number,
  microUsd: number,
): TokenRecord => ({
  timestamp: at,
  session_key: reserved.sessionKey,
  agent_id: reserved.agentId,
  provider: reserved.provider,
  model: reserved.model,
  input,
  output,
  cost: reserved.price === null ? null : microUsd / 1e6,
});

/** The record of a charge; undefined for an event that charges nothing. */
export const tokenRecordOf = (reserved: Reserved, event: BudgetEvent): TokenRecord | undefined => {
  switch (event.type) {
    case 'BudgetSettled': {
      const { settledAt, inputTokens, outputTokens, microUsd } = event.data;
      return record(reserved, settledAt, inputTokens, outputTokens, microUsd);
    }
    case 'BudgetExpired':
      return record(
        reserved,
        event.data.expiredAt,
        reserved.inputBound,
        reserved.outputBound,
        event.data.microUsd,
      );
    case 'BudgetCorrected': {
      const { correctedAt, inputTokens, outputTokens, microUsd } = event.data;
      return record(reserved, correctedAt, inputTokens, outputTokens, microUsd);
    }
    case 'BudgetReserved':
    case 'BudgetReleased':
    case 'BudgetScopeFrozen':
    case 'BudgetScopeUnfrozen':
      return undefined;
  }
};

const estimated = (event: BudgetEvent): boolean =>
  event.type === 'BudgetExpired' || (event.type === 'BudgetSettled' && event.data.estimated);

/** What a charge used beyond what was reserved for it; undefined when it stayed within. */
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

/** One line for each charge that was committed, and a warning for each that passed its bound or froze a scope. */
export const logCharges = (logger: Logger, { events, reserved }: Decided): void => {
  if (reserved === null) return;
  const { reservationId, sessionId, turnId, attempt } = reserved;
  const ids = { reservationId, sessionId, turnId, attempt };
  for (const event of events) {
    const charge = tokenRecordOf(reserved, event);
    const excess = excessOf(reserved, event);
    if (charge)
      logger.info({ ...charge, ...ids, event: event.type, estimated: estimated(event) }, 'token record');
    if (excess) logger.warn({ ...excess, ...ids }, 'a call used more than its bound');
    if (event.type === 'BudgetScopeFrozen')
      logger.warn(
        { ...event.data, ...ids },
        'a call over its bound took a scope over its limit: it is frozen',
      );
  }
};
