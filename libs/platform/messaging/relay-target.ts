import { jetstream } from '@nats-io/jetstream';
import type { JetStreamManager } from '@nats-io/jetstream';
import type { EventStore, RecordedEvent } from '@antiphon/event-store';
import type { Logger } from '@antiphon/observability';
import { eventSubject } from '@antiphon/contracts/log';
import { eventMessage } from './event-message.js';
import type { NatsLink } from './nats-link.js';
import { JETSTREAM_CODES, STREAMS, ensureStream, jetstreamCode } from './streams.js';

export type LogForRelay = Pick<EventStore, 'readLog' | 'headPosition'>;

const { name: STREAM } = STREAMS.EVENTS;
const PUBLISH_TIMEOUT_MS = 5_000;

/** Last sequence of `EVENTS`; null when there is no such stream. */
export const lastSequence = async (manager: JetStreamManager): Promise<number | null> => {
  try {
    return (await manager.streams.info(STREAM)).state.last_seq;
  } catch (error) {
    if (jetstreamCode(error) === JETSTREAM_CODES.streamNotFound) return null;
    throw error;
  }
};

const messageIdAt = async (manager: JetStreamManager, sequence: number): Promise<string | null> => {
  try {
    const stored = await manager.streams.getMessage(STREAM, { seq: sequence });
    return stored?.header.get('Nats-Msg-Id') ?? null;
  } catch (error) {
    if (jetstreamCode(error) === JETSTREAM_CODES.messageNotFound) return null;
    throw error;
  }
};

const eventAt = async (log: LogForRelay, position: number): Promise<RecordedEvent | undefined> =>
  (await log.readLog({ after: position - 1, limit: 1 })).find((event) => event.position === position);

/** Whether what `EVENTS` ends with is what the log has at that position; a message that has aged out cannot tell. */
const belongsToLog = async (manager: JetStreamManager, log: LogForRelay, last: number): Promise<boolean> => {
  if (last === 0) return true;
  if (last > (await log.headPosition())) return false;
  const [stored, event] = await Promise.all([messageIdAt(manager, last), eventAt(log, last)]);
  return stored === null || event === undefined || stored === event.eventId;
};

const createFor = async (manager: JetStreamManager, log: LogForRelay): Promise<number> => {
  const [first] = await log.readLog({ after: 0, limit: 1 });
  const firstPosition = first?.position ?? 1;
  await ensureStream(manager, { ...STREAMS.EVENTS, first_seq: firstPosition });
  return firstPosition - 1;
};

/**
 * Makes `EVENTS` fit for this log and answers the position that it has reached: its last sequence (docs/adr/0022).
 * A stream of another history (the log was restored, or is another one) is deleted and made anew.
 */
export const alignStream = async (
  manager: JetStreamManager,
  log: LogForRelay,
  logger: Logger,
): Promise<number> => {
  const last = await lastSequence(manager);
  if (last === null) return createFor(manager, log);
  if (await belongsToLog(manager, log, last)) {
    await ensureStream(manager, STREAMS.EVENTS);
    return last;
  }
  logger.error(
    { last, alert: true },
    'EVENTS holds another history than the log; it is made anew from the log',
  );
  await manager.streams.delete(STREAM);
  return createFor(manager, log);
};

/**
 * Publishes events that follow one another, all at once, and answers when all are stored. Each is stored only directly
 * after its predecessor: after a failure none behind it is, and a second relay can neither repeat nor skip one.
 */
export const publishEvents = async (
  link: NatsLink,
  events: readonly RecordedEvent[],
  logger: Logger,
): Promise<void> => {
  const client = jetstream(link.connection);
  const maxPayload = link.connection.info?.max_payload ?? 1024 * 1024;
  const publish = async (event: RecordedEvent): Promise<void> => {
    const { data, headers, omittedBytes } = eventMessage(event, maxPayload);
    if (omittedBytes !== null)
      logger.error(
        { position: event.position, bytes: omittedBytes, alert: true },
        'an event is too large for a message; consumers get it without its data',
      );
    await client.publish(eventSubject(event), data, {
      msgID: event.eventId,
      expect: { lastSequence: event.position - 1, streamName: STREAM },
      headers,
      timeout: PUBLISH_TIMEOUT_MS,
    });
  };
  const results = await Promise.allSettled(events.map(publish));
  const failure = results.find((result) => result.status === 'rejected');
  if (failure) throw failure.reason;
};
