import type { SessionEvent } from '@antiphon/contracts/agent';
import type { EventMetadata, NewEvent } from '@antiphon/event-store';
import type { Ids, JsonObject } from '@antiphon/kernel';
import { contextFrom, currentContext } from '@antiphon/observability';
import type { SessionFold } from './session-fold.js';

const SERVICE = 'agent';
/** Asked for by somebody just now, whatever turn they are about. */
const REQUESTED: ReadonlySet<SessionEvent['type']> = new Set([
  'SessionStarted',
  'SessionForked',
  'TurnRequested',
  'TurnCancelRequested',
]);

type Origin = Pick<EventMetadata, 'correlationId' | 'causationId' | 'traceparent'>;

const fromRequest = (): Origin => {
  const { correlationId, causationId, traceparent } = currentContext() ?? contextFrom(SERVICE);
  return { correlationId, traceparent, ...(causationId ? { causationId } : {}) };
};

/** What an event says that a request asks for just now. */
export const eventMetadata = (): EventMetadata => ({ ...fromRequest(), service: SERVICE });

const originOf = (event: SessionEvent, origins: SessionFold['origins']): Origin | undefined =>
  'turnId' in event.data ? origins[event.data.turnId] : undefined;

/** What an event says about where it came from: its turn's request, however much later and wherever it happens. */
const metadataOf = (
  event: SessionEvent,
  origins: SessionFold['origins'],
  epoch: number | null,
): EventMetadata => {
  const origin = REQUESTED.has(event.type) ? undefined : originOf(event, origins);
  return { ...(origin ?? fromRequest()), service: SERVICE, ...(epoch === null ? {} : { epoch }) };
};

/** Session events as the log takes them, each with an id of its own. */
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
