import { v5 } from 'uuid';
import type { SessionEvent, SessionEventOf } from '@antiphon/contracts/agent';
import { REFUSED } from '@antiphon/contracts/metering';
import type { BudgetEventOf, CallExtension, CallOutcome } from '@antiphon/contracts/metering';
import type { SessionState } from '@antiphon/conversation-domain';
import type { Logger } from '@antiphon/observability';

const completedIn = (events: readonly SessionEvent[]) =>
  events.find((event) => event.type === 'ModelCallCompleted');

/**
 * Returns the settlement for the commit that ends a call; null for any other. Its event id is the
 * one that metering would give it, so that the log has at most one.
 */
export const settlementInCommit = (events: readonly SessionEvent[]): Pick<CallExtension, 'settle'> | null => {
  const completed = completedIn(events);
  if (!completed) return null;
  const { reservationId } = completed.data;
  return { settle: { reservationId, eventId: v5('BudgetSettled ', reservationId) } };
};

/** Logs the usage record of a call that the commit settled, in the form of metering's. */
export const logCharge = (
  logger: Logger,
  { started }: SessionState,
  events: readonly SessionEvent[],
  settled: BudgetEventOf<'BudgetSettled'>['data'],
): void => {
  const completed = completedIn(events);
  if (!completed || !started) return;
  const { provider, model, turnId, attempt, costMicroUsd } = completed.data;
  const { sessionId, sessionKey, agentId } = started;
  const { settledAt, inputTokens, outputTokens, microUsd, estimated, reservationId } = settled;
  const { cacheReadTokens: read, cacheWriteTokens: written } = settled;
  logger.info(
    {
      ...{ timestamp: settledAt, session_key: sessionKey, agent_id: agentId, provider, model },
      ...{ input: inputTokens, output: outputTokens, cost: costMicroUsd === null ? null : microUsd / 1e6 },
      ...(read ? { cache_read: read } : {}),
      ...(written ? { cache_write: written } : {}),
      ...{ reservationId, sessionId, turnId, attempt, event: 'BudgetSettled', estimated },
    },
    'model call charged',
  );
};

const outcomeOfAborted = (data: SessionEventOf<'ModelCallAborted'>['data']): CallOutcome | null => {
  // Nothing was reserved.
  if (data.reason === 'budget_refused') return null;
  if (!data.dispatched) return { kind: 'not_dispatched', reason: data.reason };
  if (data.refused && data.usage === null) return { kind: 'not_dispatched', reason: REFUSED };
  return data.usage ? { kind: 'used', ...data.usage } : { kind: 'unknown' };
};

export interface Settlement {
  readonly reservationId: string;
  readonly outcome: CallOutcome;
}

/** Returns the settlement of an attempt that a committed event ended; null for other events. */
export const settlementOf = (event: SessionEvent): Settlement | null => {
  if (event.type === 'ModelCallCompleted')
    return { reservationId: event.data.reservationId, outcome: { kind: 'used', ...event.data.usage } };
  if (event.type !== 'ModelCallAborted') return null;
  const outcome = outcomeOfAborted(event.data);
  return outcome && { reservationId: event.data.reservationId, outcome };
};
