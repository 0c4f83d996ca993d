import { jetstream } from '@nats-io/jetstream';
import type { JsMsg, StoredMsg } from '@nats-io/jetstream';
import { headers as createHeaders } from '@nats-io/transport-node';
import type { MsgHdrs } from '@nats-io/transport-node';
import { toAppError } from '@antiphon/kernel';
import type { NatsLink } from '../link/nats-link.js';
import { JETSTREAM_CODES, STREAMS, jetstreamErrorCode, openJetStreamManager } from '../link/streams.js';

/** A message that a consumer gave up, before it is stored. */
export interface DeadLetter {
  readonly consumer: string;
  /** Deduplication id: the same for each attempt to store the same message. */
  readonly id: string;
  readonly subject: string;
  readonly data: Uint8Array | string;
  readonly headers?: MsgHdrs | undefined;
  readonly error: unknown;
  readonly deliveryCount: number;
}

/** A dead letter in the stream `DLQ`. */
export interface StoredDeadLetter {
  /** Sequence number in `DLQ`. */
  readonly sequence: number;
  /** A durable, or `<service>-requests` for a request without a reply subject. */
  readonly consumer: string;
  /** Original subject of the message. */
  readonly subject: string;
  readonly code: string;
  readonly reason: string;
  readonly deliveries: number;
  /** ISO 8601. */
  readonly at: string;
  readonly data: Uint8Array;
  readonly headers: MsgHdrs;
}

export const DLQ_HEADERS = {
  kind: 'x-dlq-kind',
  code: 'x-dlq-code',
  reason: 'x-dlq-reason',
  subject: 'x-dlq-subject',
  deliveries: 'x-dlq-deliveries',
} as const;

const { name: DLQ } = STREAMS.DLQ;
const PREFIX = 'dlq.';

export const deadLetterSubject = (consumer: string): string => `${PREFIX}${consumer}`;

/** Returns the consumer name for failed requests of a service that have no reply subject. */
export const requestDeadLetters = (service: string): string => `${service}-requests`;

const MAX_REASON = 500;
// A header's value ends at a line break, and the client library refuses one.
const headerSafe = (text: string): string => text.replaceAll(/[\r\n]+/g, ' ').slice(0, MAX_REASON);

/** Copies headers, except JetStream's own: those describe the original publish. */
export const copyHeaders = (from: MsgHdrs | undefined): MsgHdrs => {
  const copy = createHeaders();
  for (const key of from?.keys() ?? []) if (!key.startsWith('Nats-')) copy.set(key, from?.get(key) ?? '');
  return copy;
};

const headersOf = (letter: DeadLetter): MsgHdrs => {
  const { kind, code, message } = toAppError(letter.error);
  const headers = copyHeaders(letter.headers);
  headers.set(DLQ_HEADERS.kind, kind);
  headers.set(DLQ_HEADERS.code, code);
  headers.set(DLQ_HEADERS.reason, headerSafe(message));
  headers.set(DLQ_HEADERS.subject, letter.subject);
  headers.set(DLQ_HEADERS.deliveries, String(letter.deliveryCount));
  return headers;
};

/** Stores a message in `DLQ` with its reason. Resolves once JetStream has acknowledged it. */
export const sendDeadLetter = async (link: NatsLink, letter: DeadLetter): Promise<void> => {
  await jetstream(link.connection).publish(deadLetterSubject(letter.consumer), letter.data, {
    msgID: `${letter.consumer}:${letter.id}`,
    headers: headersOf(letter),
  });
};

/** Publishes a dead letter without waiting, for a message that JetStream does not hold anyway. */
export const publishDeadLetter = (link: NatsLink, letter: DeadLetter): void =>
  link.connection.publish(deadLetterSubject(letter.consumer), letter.data, { headers: headersOf(letter) });

type LetterParts = Pick<StoredDeadLetter, 'sequence' | 'at' | 'data' | 'headers'>;

const toLetter = (dlqSubject: string, { sequence, at, data, headers }: LetterParts): StoredDeadLetter => {
  return {
    sequence,
    consumer: dlqSubject.slice(PREFIX.length),
    subject: headers.get(DLQ_HEADERS.subject),
    code: headers.get(DLQ_HEADERS.code),
    reason: headers.get(DLQ_HEADERS.reason),
    deliveries: Number(headers.get(DLQ_HEADERS.deliveries)),
    ...{ at, data, headers },
  };
};

const toStored = ({ subject, seq, info, data, headers }: JsMsg): StoredDeadLetter =>
  toLetter(subject, {
    ...{ sequence: seq, data, headers: headers ?? createHeaders() },
    at: new Date(Number(info.timestampNanos) / 1e6).toISOString(),
  });

const fromMessage = ({ subject, seq, time, data, header }: StoredMsg): StoredDeadLetter =>
  toLetter(subject, { sequence: seq, data, headers: header, at: time.toISOString() });

const countDeadLetters = async (link: NatsLink): Promise<number> => {
  const manager = await openJetStreamManager(link.connection);
  try {
    return (await manager.streams.info(DLQ)).state.messages;
  } catch (error) {
    if (jetstreamErrorCode(error) === JETSTREAM_CODES.streamNotFound) return 0;
    throw error;
  }
};

/**
 * Lists all dead letters, oldest first; none where the stream does not exist. Needs the operator's
 * credential.
 */
export const listDeadLetters = async (link: NatsLink): Promise<readonly StoredDeadLetter[]> => {
  const count = await countDeadLetters(link);
  if (count === 0) return [];
  const consumer = await jetstream(link.connection).consumers.get(DLQ, {});
  const letters: StoredDeadLetter[] = [];
  for await (const message of await consumer.fetch({ max_messages: count, expires: 5_000 }))
    letters.push(toStored(message));
  return letters;
};

/**
 * Reads the first dead letter at or after a sequence number; null if there is none. It needs no
 * consumer, so that the service of the consumers may call it.
 */
export const readDeadLetter = async (link: NatsLink, sequence: number): Promise<StoredDeadLetter | null> => {
  const manager = await openJetStreamManager(link.connection);
  try {
    const found = await manager.direct.getMessage(DLQ, { seq: sequence, next_by_subj: `${PREFIX}>` });
    return found && fromMessage(found);
  } catch (error) {
    if (jetstreamErrorCode(error) === JETSTREAM_CODES.streamNotFound) return null;
    throw error;
  }
};

/** Returns the workspace of a letter's event; undefined for a letter of a request. */
export const workspaceOfLetter = ({ subject }: Pick<StoredDeadLetter, 'subject'>): string | undefined =>
  subject.startsWith('evt.') ? subject.split('.')[1] : undefined;

/** Returns the id of the event that a letter carries; null for a letter of a request. */
export const eventIdOfLetter = ({ subject, headers }: StoredDeadLetter): string | null =>
  subject.startsWith('evt.') ? (headers.get('Nats-Msg-Id').split(':').at(-1) ?? null) : null;
