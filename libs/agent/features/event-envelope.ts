import type { EventMetadata, NewEvent } from '@antiphon/event-store';
import type { Ids, JsonObject } from '@antiphon/kernel';
import { contextFrom, currentContext } from '@antiphon/observability';

const SERVICE = 'agent';

/** Causal origin of an event. */
export type EventOrigin = Pick<EventMetadata, 'correlationId' | 'causationId' | 'traceparent'>;

const currentOrigin = (): EventOrigin => {
  const { correlationId, causationId, traceparent } = currentContext() ?? contextFrom(SERVICE);
  return { correlationId, traceparent, ...(causationId ? { causationId } : {}) };
};

/** Returns the metadata of an event with the given origin, by default the current request's. */
export const eventMetadata = (origin: EventOrigin = currentOrigin()): EventMetadata => ({
  ...origin,
  service: SERVICE,
});

interface DecidedEvent {
  readonly type: string;
  readonly schemaVersion: number;
  readonly data: object;
}

/**
 * Returns a decided event as the log takes it, with a new id and the current request as its origin.
 */
export const toNewEvent = ({ type, schemaVersion, data }: DecidedEvent, ids: Ids): NewEvent => ({
  eventId: ids.next(),
  type,
  schemaVersion,
  data: data as JsonObject,
  metadata: eventMetadata(),
});
