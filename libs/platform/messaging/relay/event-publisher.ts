import { jetstream } from '@nats-io/jetstream';
import type { JetStreamClient } from '@nats-io/jetstream';
import type { RecordedEvent } from '@antiphon/event-store';
import type { Logger } from '@antiphon/observability';
import { callWhileConnected } from '../link/nats-link.js';
import type { NatsLink } from '../link/nats-link.js';
import { JETSTREAM_CODES, STREAMS, jetstreamErrorCode } from '../link/streams.js';
import { eventMessage, subjectOf } from './event-message.js';
import type { EventMessage } from './event-message.js';

interface Prepared extends EventMessage {
  readonly event: RecordedEvent;
  readonly subject: string;
}

/** Short, because a retry is safe, and a server that has just started may drop a message. */
const PUBLISH_TIMEOUT_MS = 2_000;
/** Time without batches after the server has refused one, ms. */
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

/** Publishes all messages or none, with one sync of the server's disk. */
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

/**
 * Returns true when the server refuses batches as such; false for an outage or a version conflict.
 */
const isBatchRefused = (error: unknown): boolean => {
  const code = jetstreamErrorCode(error);
  if (code !== undefined) return code !== JETSTREAM_CODES.wrongLastSequence;
  // The library gives no code when the server rejects the commit.
  return error instanceof Error && error.message.startsWith('batch ');
};

/** Publishes events to `EVENTS`, in batches where the server supports them. */
export class EventPublisher {
  readonly #client: JetStreamClient;
  #noBatchesUntil = 0;

  constructor(
    private readonly link: NatsLink,
    private readonly logger: Logger,
  ) {
    this.#client = jetstream(link.connection);
  }

  /**
   * Publishes consecutive events and resolves when all are stored. The server stores an event only
   * directly after its predecessor. No event is stored behind a failed one, and a second relay can
   * neither repeat nor skip one. With `omits`, the messages have no data.
   */
  publish(events: readonly RecordedEvent[], { omits = false } = {}): Promise<void> {
    return callWhileConnected(this.link, async () => {
      if (await this.#tryBatch(this.#prepareAll(events, omits))) return;
      // Prepared again, because the refused batch has changed the headers.
      await publishEach(this.#client, this.#prepareAll(events, omits));
    });
  }

  async #tryBatch(messages: readonly Prepared[]): Promise<boolean> {
    const [first, ...rest] = messages;
    const last = rest.pop();
    if (performance.now() < this.#noBatchesUntil || first === undefined || last === undefined) return false;
    try {
      await publishBatch(this.#client, first, rest, last);
      return true;
    } catch (error) {
      if (!isBatchRefused(error)) throw error;
      // Servers before 2.14 refuse message ids within a batch.
      this.#noBatchesUntil = performance.now() + BATCH_PAUSE_MS;
      this.logger.info({ err: error, events: messages.length }, 'event batch refused, sending singly');
      return false;
    }
  }

  #prepareAll(events: readonly RecordedEvent[], omits: boolean): Prepared[] {
    return events.map((event) => this.#prepare(event, omits));
  }

  #prepare(event: RecordedEvent, omits: boolean): Prepared {
    const max = omits ? 0 : (this.link.connection.info?.max_payload ?? DEFAULT_MAX_PAYLOAD);
    const message = eventMessage(event, max);
    if (message.omittedBytes !== null) {
      const fields = { position: event.position, bytes: message.omittedBytes, alert: true };
      this.logger.error(fields, omits ? 'event published without data' : 'event too large for a message');
    }
    return { ...message, event, subject: subjectOf(event) };
  }
}
