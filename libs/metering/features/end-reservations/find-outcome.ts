import { ModelCallAborted, ModelCallCompleted, sessionStream } from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
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

const parse = (recorded: RecordedEvent): CallOutcome => {
  const event = upcast(recorded);
  return outcomeOfCall(
    event.type === 'ModelCallCompleted' ? ModelCallCompleted.parse(event) : ModelCallAborted.parse(event),
  );
};

/** Attempts only grow within a session, so nothing before the start of this one can be its end. */
const startOf = (event: RecordedEvent, { reservationId, attempt }: OpenReservation): Standing | undefined => {
  const own = attemptOf(event);
  if (own === attempt && event.type === 'ModelCallStarted')
    return event.data['reservationId'] === reservationId ? 'at_work' : 'overtaken';
  return own !== undefined && own < attempt ? 'never_begun' : undefined;
};

/**
 * `never_begun`: no call in the log cites the reservation, which was asked for while its start was being committed.
 * `overtaken`: none ever will, for its attempt has begun with another one.
 */
export type Standing = 'at_work' | 'never_begun' | 'overtaken';

/** Looks into the session's event stream, newest first, for the end of a reservation's attempt. */
export const findOutcome = async (
  store: EventStore,
  open: OpenReservation,
): Promise<CallOutcome | Standing> => {
  const { workspace, reservationId, sessionId } = open;
  const stream = sessionStream(sessionId);
  let below = (await store.streamVersion(workspace, stream)) + 1;
  while (below > 1) {
    const fromVersion = Math.max(1, below - PAGE);
    const page = await store.readStream(workspace, stream, { fromVersion, limit: below - fromVersion });
    for (const event of page.toReversed()) {
      if (ends(event, reservationId)) return parse(event);
      const standing = startOf(event, open);
      if (standing) return standing;
    }
    below = fromVersion;
  }
  return 'never_begun';
};
