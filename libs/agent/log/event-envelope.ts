import type { z } from 'zod';
import { upcast } from '@antiphon/contracts/events';
import type { AggregateOptions, EventMetadata, NewEvent } from '@antiphon/event-store';
import { bug } from '@antiphon/kernel';
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

/**
 * Returns how an aggregate's events are read and stored. An event that this version does not know
 * is the bug `unknownCode`; without a code it is ignored.
 */
export const eventForms = <Event extends DecidedEvent>(
  schema: z.ZodType<Event>,
  ids: Ids,
  unknownCode: string | null,
): Pick<AggregateOptions<unknown, Event>, 'parse' | 'toNewEvent'> => ({
  parse: (recorded) => {
    const { data, error } = schema.safeParse(upcast(recorded));
    if (!error) return data;
    if (unknownCode === null) return null;
    throw bug(unknownCode, `this version does not know ${recorded.type}`, { cause: error });
  },
  toNewEvent: (event) => toNewEvent(event, ids),
});
