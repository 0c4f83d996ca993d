import { jetstream } from '@nats-io/jetstream';
import type { JsMsg } from '@nats-io/jetstream';
import { headers as createHeaders } from '@nats-io/transport-node';
import type { MsgHdrs } from '@nats-io/transport-node';
import { DLQ_HEADERS } from './dead-letter.js';
import type { NatsLink } from '../link/nats-link.js';
import { translateRequestError } from '../requests/request-client.js';
import { requestDeadLetters } from '../requests/request-server.js';
import { REPLAY_ID, replaySubject } from './serve-replays.js';
import { JETSTREAM_CODES, STREAMS, jetstreamErrorCode, openJetStreamManager } from '../link/streams.js';
import { fromWireError, parseJson } from '../requests/wire.js';
import type { WireReply } from '../requests/wire.js';

/** A message that was given up, as `DLQ` keeps it. */
export interface StoredDeadLetter {
  /** In `DLQ`. */
  readonly sequence: number;
  /** A durable, or `<service>-requests` for a request that nobody waited for. */
  readonly consumer: string;
  /** Where the message came from. */
  readonly subject: string;
  readonly code: string;
  readonly reason: string;
  readonly deliveries: number;
  /** ISO 8601. */
  readonly at: string;
  readonly data: Uint8Array;
  readonly headers: MsgHdrs;
}

const { name: DLQ } = STREAMS.DLQ;
const PREFIX = 'dlq.';
const REPLAY_TIMEOUT_MS = 30_000;

const toKept = (message: JsMsg): StoredDeadLetter => {
  const headers = message.headers ?? createHeaders();
  return {
    sequence: message.seq,
    consumer: message.subject.slice(PREFIX.length),
    subject: headers.get(DLQ_HEADERS.subject),
    code: headers.get(DLQ_HEADERS.code),
    reason: headers.get(DLQ_HEADERS.reason),
    deliveries: Number(headers.get(DLQ_HEADERS.deliveries)),
    at: new Date(Number(message.info.timestampNanos) / 1e6).toISOString(),
    data: message.data,
    headers,
  };
};

/** Every message that a consumer gave up, oldest first; none where there is no such stream. The operator's credential. */
export const listDeadLetters = async (link: NatsLink): Promise<readonly StoredDeadLetter[]> => {
  const manager = await openJetStreamManager(link.connection);
  const count = await manager.streams.info(DLQ).then(
    ({ state }) => state.messages,
    (error: unknown) => {
      if (jetstreamErrorCode(error) === JETSTREAM_CODES.streamNotFound) return 0;
      throw error;
    },
  );
  if (count === 0) return [];
  const consumer = await jetstream(link.connection).consumers.get(DLQ, {});
  const letters: StoredDeadLetter[] = [];
  for await (const message of await consumer.fetch({ max_messages: count, expires: 5_000 }))
    letters.push(toKept(message));
  return letters;
};

/** Services have no `-` in their names, durables begin with one. */
const serviceOf = (consumer: string): string => consumer.slice(0, consumer.indexOf('-'));

const carried = ({ headers, consumer }: StoredDeadLetter): MsgHdrs => {
  const copy = createHeaders();
  for (const key of headers.keys()) if (!key.startsWith('Nats-')) copy.set(key, headers.get(key));
  copy.set(REPLAY_ID, headers.get('Nats-Msg-Id').slice(consumer.length + 1));
  return copy;
};

/**
 * Has the service handle a dead letter again, and removes it once that has succeeded. A request that nobody waited for
 * is sent again, to whoever answers it now. Rejects with what the service answers, as an AppError; the letter stays then.
 */
export const replayDeadLetter = async (link: NatsLink, letter: StoredDeadLetter): Promise<void> => {
  const service = serviceOf(letter.consumer);
  const isRequest = letter.consumer === requestDeadLetters(service);
  const subject = isRequest ? letter.subject : replaySubject(service, letter.consumer);
  const options = { timeout: REPLAY_TIMEOUT_MS, headers: carried(letter) };
  const answer = await link.connection.request(subject, letter.data, options).catch((error: unknown) => {
    throw translateRequestError(subject, error);
  });
  const reply = parseJson(answer.data, 'MESSAGING.BAD_REPLY') as WireReply;
  if (!reply.ok) throw fromWireError(reply.error);
  await (await openJetStreamManager(link.connection)).streams.deleteMessage(DLQ, letter.sequence);
};
