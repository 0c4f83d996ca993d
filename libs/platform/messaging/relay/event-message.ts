import { headers as createHeaders } from '@nats-io/transport-node';
import type { MsgHdrs } from '@nats-io/transport-node';
import { eventSubject } from '@antiphon/contracts/log';
import { HEADERS } from '@antiphon/contracts/messaging';
import type { RecordedEvent } from '@antiphon/event-store';

/** What a message in `EVENTS` says about its event without being parsed. */
export const EVENT_HEADERS = {
  type: 'x-event-type',
  position: 'x-position',
  streamVersion: 'x-stream-version',
  /** Bytes of an event that did not fit into a message; the log has it. */
  omitted: 'x-omitted',
} as const;

export interface EventMessage {
  readonly data: string;
  readonly headers: MsgHdrs;
  /** Size of an event that goes without its data, null for one that is whole. */
  readonly omittedBytes: number | null;
}

const EMPTY_TOKEN = /(^|\.)(\.|$)/;

/** Where an event is published. An id whose dots would leave a token empty, which no subject may have, has them escaped. */
export const subjectOf = (event: RecordedEvent): string =>
  eventSubject(
    EMPTY_TOKEN.test(event.streamId) ? { ...event, streamId: event.streamId.replaceAll('.', '%2E') } : event,
  );

/** Room for headers and protocol within the server's `max_payload`, which counts headers too. */
const HEADER_ROOM = 2_048;

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

/** An event as a message. One that is too large goes without its data, so that what follows it is not held up. */
export const eventMessage = (event: RecordedEvent, maxPayload: number): EventMessage => {
  const headers = headersOf(event);
  const data = JSON.stringify(event);
  const bytes = Buffer.byteLength(data);
  if (bytes + HEADER_ROOM <= maxPayload) return { data, headers, omittedBytes: null };
  headers.set(EVENT_HEADERS.omitted, String(bytes));
  return { data: JSON.stringify({ ...event, data: {} }), headers, omittedBytes: bytes };
};
