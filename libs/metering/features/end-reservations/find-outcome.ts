import { ModelCallAborted, ModelCallCompleted, sessionStream } from '@antiphon/contracts/agent';
import type { CallOutcome } from '@antiphon/contracts/metering';
import type { EventStore, RecordedEvent } from '@antiphon/event-store';
import { outcomeOfCall } from './outcome-of-call.js';

export interface OpenReservation {
  readonly workspace: string;
  readonly reservationId: string;
  readonly sessionId: string;
  readonly attempt: number;
}

const PAGE = 64;

const attemptOf = ({ data }: RecordedEvent): number | undefined =>
  typeof data['attempt'] === 'number' ? data['attempt'] : undefined;

const ends = (event: RecordedEvent, reservationId: string): boolean =>
  (event.type === 'ModelCallCompleted' || event.type === 'ModelCallAborted') &&
  event.data['reservationId'] === reservationId;

const parse = (event: RecordedEvent): CallOutcome =>
  outcomeOfCall(
    event.type === 'ModelCallCompleted' ? ModelCallCompleted.parse(event) : ModelCallAborted.parse(event),
  );

/** Attempts only grow within a session, so nothing before the start of this one can be its end. */
const isBefore = (event: RecordedEvent, attempt: number): boolean =>
  (attemptOf(event) ?? Infinity) < attempt ||
  (event.type === 'ModelCallStarted' && attemptOf(event) === attempt);

/**
 * Looks into the session's event stream, newest first, for the end of a reservation's attempt.
 * Undefined while the attempt is still at work.
 */
export const findOutcome = async (
  store: EventStore,
  { workspace, reservationId, sessionId, attempt }: OpenReservation,
): Promise<CallOutcome | undefined> => {
  const stream = sessionStream(sessionId);
  let below = (await store.streamVersion(workspace, stream)) + 1;
  while (below > 1) {
    const fromVersion = Math.max(1, below - PAGE);
    const page = await store.readStream(workspace, stream, { fromVersion, limit: below - fromVersion });
    for (const event of page.toReversed()) {
      if (ends(event, reservationId)) return parse(event);
      if (isBefore(event, attempt)) return undefined;
    }
    below = fromVersion;
  }
  return undefined;
};
