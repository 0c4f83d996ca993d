import { jetstream } from '@nats-io/jetstream';
import type { JetStreamClient } from '@nats-io/jetstream';
import type { RecordedEvent } from '@antiphon/event-store';
import type { Logger } from '@antiphon/observability';
import { eventMessage, subjectOf } from './event-message.js';
import type { EventMessage } from './event-message.js';
import { callWhileConnected } from '../link/nats-link.js';
import type { NatsLink } from '../link/nats-link.js';
import { JETSTREAM_CODES, STREAMS, jetstreamErrorCode } from '../link/streams.js';

/**
 * Publishes events that follow one another, and answers when all are stored. Each is stored only directly after its
 * predecessor: after a failure none behind it is, and a second relay can neither repeat nor skip one.
 */
export type EventPublisher = (events: readonly RecordedEvent[]) => Promise<void>;

interface Prepared extends EventMessage {
  readonly event: RecordedEvent;
  readonly subject: string;
}

/** Short, because trying again is safe, and a server that has just started may drop what comes too early. */
const PUBLISH_TIMEOUT_MS = 2_000;
/** How long events go one by one after a server has refused a batch. */
const BATCH_PAUSE_MS = 60_000;
const DEFAULT_MAX_PAYLOAD = 1024 * 1024;

const expectationOf = ({ position }: RecordedEvent) => ({
  lastSequence: position - 1,
  streamName: STREAMS.EVENTS.name,
});

const publishOne = async (
  client: JetStreamClient,
  { event, subject, data, headers }: Prepared,
): Promise<void> => {
  const options = {
    msgID: event.eventId,
    expect: expectationOf(event),
    headers,
    timeout: PUBLISH_TIMEOUT_MS,
  };
  await client.publish(subject, data, options);
};

const publishEach = async (client: JetStreamClient, messages: readonly Prepared[]): Promise<void> => {
  const results = await Promise.allSettled(messages.map((message) => publishOne(client, message)));
  const failure = results.find((result) => result.status === 'rejected');
  if (failure) throw failure.reason;
};

/** All of them or none, with one sync of the server's disk. */
const publishBatch = async (
  client: JetStreamClient,
  first: Prepared,
  between: readonly Prepared[],
  last: Prepared,
): Promise<void> => {
  for (const { event, headers } of [...between, last]) headers.set('Nats-Msg-Id', event.eventId);
  const options = {
    msgID: first.event.eventId,
    expect: expectationOf(first.event),
    headers: first.headers,
    timeout: PUBLISH_TIMEOUT_MS,
  };
  const batch = await client.startBatch(first.subject, first.data, options);
  for (const { subject, data, headers } of between) batch.add(subject, data, { headers });
  await batch.commit(last.subject, last.data, { headers: last.headers, timeout: PUBLISH_TIMEOUT_MS });
};

/** Not that the server was away, or that somebody else has published: that this batch, as a batch, is not taken. */
const isRefusal = (error: unknown): boolean => {
  const code = jetstreamErrorCode(error);
  if (code !== undefined) return code !== JETSTREAM_CODES.wrongLastSequence;
  // The library says no more when the commit is answered by an error.
  return error instanceof Error && error.message.startsWith('batch ');
};

export const createEventPublisher = (link: NatsLink, logger: Logger): EventPublisher => {
  const client = jetstream(link.connection);
  let batchesFrom = 0;

  const prepare = (event: RecordedEvent): Prepared => {
    const message = eventMessage(event, link.connection.info?.max_payload ?? DEFAULT_MAX_PAYLOAD);
    if (message.omittedBytes !== null)
      logger.error(
        { position: event.position, bytes: message.omittedBytes, alert: true },
        'an event is too large for a message; consumers get it without its data',
      );
    return { ...message, event, subject: subjectOf(event) };
  };

  const tryBatch = async (messages: readonly Prepared[]): Promise<boolean> => {
    const [first, ...rest] = messages;
    const last = rest.pop();
    if (performance.now() < batchesFrom || first === undefined || last === undefined) return false;
    try {
      await publishBatch(client, first, rest, last);
      return true;
    } catch (error) {
      if (!isRefusal(error)) throw error;
      // Servers before 2.14 refuse message ids within a batch.
      batchesFrom = performance.now() + BATCH_PAUSE_MS;
      logger.info(
        { err: error, events: messages.length },
        'a batch of events was refused; sending them one by one',
      );
      return false;
    }
  };

  return (events) =>
    callWhileConnected(link, async () => {
      if (await tryBatch(events.map(prepare))) return;
      // Prepared again: the refused batch has left its marks in the headers.
      await publishEach(client, events.map(prepare));
    });
};
