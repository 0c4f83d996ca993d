import type { SessionEventOf } from '@antiphon/contracts/agent';
import { settleBudget } from '@antiphon/contracts/metering';
import type { CallOutcome } from '@antiphon/contracts/metering';
import type { SessionEvent } from '@antiphon/contracts/agent';
import type { RequestClient } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';

const ofFailure = (data: SessionEventOf<'ModelCallAborted'>['data']): CallOutcome | null => {
  // Nothing was reserved.
  if (data.reason === 'budget_refused') return null;
  if (!data.dispatched) return { kind: 'not_dispatched', reason: data.reason };
  return data.usage ? { kind: 'used', ...data.usage } : { kind: 'unknown' };
};

/** What metering is told of an attempt, as the event that was committed says it. */
const outcomeOf = (event: SessionEvent): { reservationId: string; outcome: CallOutcome } | null => {
  if (event.type === 'ModelCallCompleted')
    return { reservationId: event.data.reservationId, outcome: { kind: 'used', ...event.data.usage } };
  if (event.type !== 'ModelCallAborted') return null;
  const outcome = ofFailure(event.data);
  return outcome && { reservationId: event.data.reservationId, outcome };
};

/**
 * Tells metering what the attempts that just ended have used. Nobody waits for it and nothing is lost by it:
 * metering settles from the log what it was not told.
 */
export const settleCalls = (
  { requests, logger }: { readonly requests: RequestClient; readonly logger: Logger },
  workspace: string,
  events: readonly SessionEvent[],
): void => {
  for (const settled of events.map(outcomeOf)) {
    if (!settled) continue;
    requests.request(settleBudget, { workspace, ...settled }).catch((error: unknown) => {
      logger.info(
        { err: error, reservationId: settled.reservationId },
        'metering will settle this from the log',
      );
    });
  }
};
