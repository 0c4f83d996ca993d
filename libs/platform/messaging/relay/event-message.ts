import { headers as createHeaders } from '@nats-io/transport-node';
import type { MsgHdrs } from '@nats-io/transport-node';
import { eventSubject } from '@antiphon/contracts/log';
import { HEADERS } from '@antiphon/contracts/messaging';
import type { RecordedEvent } from '@antiphon/event-store';

/** Headers of a message in `EVENTS`, for consumers that need not parse its event. */
export const EVENT_HEADERS = {
  type: 'x-event-type',
  position: 'x-position',
  streamVersion: 'x-stream-version',
  /** Size of an event too large for a message, bytes; its data is in the log only. */
  omitted: 'x-omitted',
} as const;

export interface EventMessage {
  readonly data: string;
  readonly headers: MsgHdrs;
  /** Size of an event whose data was left out, null for a complete one. */
  readonly omittedBytes: number | null;
}

const EMPTY_TOKEN = /(^|\.)(\.|$)/;

/**
 * Returns the subject of an event. Dots of an id are escaped where they would make an empty,
 * invalid token.
 */
export const subjectOf = (event: RecordedEvent): string =>
  eventSubject(
    EMPTY_TOKEN.test(event.streamId) ? { ...event, streamId: event.streamId.replaceAll('.', '%2E') } : event,
  );

/** Bytes reserved for headers and protocol: the server's `max_payload` includes headers. */
const HEADER_RESERVE = 2_048;

const headersOf = (event: RecordedEvent): MsgHdrs => {
  const { correlationId, causationId, traceparent } = event.metadata;
  const headers = createHeaders();
  headers.set(EVENT_HEADERS.type, event.type);
  headers.set(EVENT_HEADERS.position, String(event.position));
  headers.set(EVENT_HEADERS.streamVersion, String(event.streamVersion));
  headers.set(HEADERS.correlationId, correlationId);
  headers.set(HEADERS.causationId, causationId ?? event.eventId);
  if (traceparent !== undefined) headers.set(HEADERS.traceparent, traceparent);
  return headers;
};

/**
 * Encodes an event as a message. The data of an event that is too large is left out, so that later
 * events flow.
 */
export const eventMessage = (event: RecordedEvent, maxPayload: number): EventMessage => {
  const headers = headersOf(event);
  const data = JSON.stringify(event);
  const bytes = Buffer.byteLength(data);
  if (bytes + HEADER_RESERVE <= maxPayload) return { data, headers, omittedBytes: null };
  headers.set(EVENT_HEADERS.omitted, String(bytes));
  return { data: JSON.stringify({ ...event, data: {} }), headers, omittedBytes: bytes };
};
