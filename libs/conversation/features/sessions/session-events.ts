import type { SessionEvent } from '@antiphon/contracts/agent';
import type { EventMetadata, NewEvent } from '@antiphon/event-store';
import type { Ids, JsonObject } from '@antiphon/kernel';
import { eventMetadata } from '@antiphon/agent-log';
import type { EventOrigin } from '@antiphon/agent-log';
import type { SessionFold } from './session-fold.js';

/** Events whose origin is the current request, also if they concern an earlier turn. */
const REQUESTED: ReadonlySet<SessionEvent['type']> = new Set([
  'SessionStarted',
  'SessionForked',
  'TurnRequested',
  'TurnCancelRequested',
]);

const originOf = (event: SessionEvent, origins: SessionFold['origins']): EventOrigin | undefined =>
  'turnId' in event.data ? origins[event.data.turnId] : undefined;

/**
 * Returns an event's metadata. Its origin is the turn's request, in any process and at any time.
 */
const metadataOf = (
  event: SessionEvent,
  origins: SessionFold['origins'],
  epoch: number | null,
): EventMetadata => {
  const origin = REQUESTED.has(event.type) ? undefined : originOf(event, origins);
  return { ...eventMetadata(origin), ...(epoch === null ? {} : { epoch }) };
};

/** Returns session events as the log takes them, each with a new id. */
export const toNewEvents = (
  events: readonly SessionEvent[],
  fold: SessionFold,
  epoch: number | null,
  ids: Ids,
): NewEvent[] => {
  let { origins } = fold;
  return events.map((event) => {
    const eventId = ids.next();
    const metadata = metadataOf(event, origins, epoch);
    if (event.type === 'TurnRequested') {
      const { correlationId, traceparent } = metadata;
      const origin = { correlationId, causationId: eventId, ...(traceparent ? { traceparent } : {}) };
      origins = { ...origins, [event.data.turnId]: origin };
    }
    const { type, schemaVersion, data } = event;
    return { eventId, type, schemaVersion, data: data as unknown as JsonObject, metadata };
  });
};
