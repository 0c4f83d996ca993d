import { jetstream } from '@nats-io/jetstream';
import { headers as createHeaders } from '@nats-io/transport-node';
import type { MsgHdrs } from '@nats-io/transport-node';
import { toAppError } from '@antiphon/kernel';
import type { NatsLink } from '../link/nats-link.js';

/** A message that nobody will work on any more. */
export interface DeadLetter {
  readonly consumer: string;
  /** The same for the same message, so that giving it up twice keeps it once. */
  readonly id: string;
  readonly subject: string;
  readonly data: Uint8Array | string;
  readonly headers?: MsgHdrs | undefined;
  readonly error: unknown;
  readonly deliveryCount: number;
}

export const DLQ_HEADERS = {
  kind: 'x-dlq-kind',
  code: 'x-dlq-code',
  reason: 'x-dlq-reason',
  subject: 'x-dlq-subject',
  deliveries: 'x-dlq-deliveries',
} as const;

export const deadLetterSubject = (consumer: string): string => `dlq.${consumer}`;

const MAX_REASON = 500;
// A header's value ends at a line break; the client refuses one outright.
const headerSafe = (text: string): string => text.replaceAll(/[\r\n]+/g, ' ').slice(0, MAX_REASON);

// JetStream's own headers speak of the publish that they came with.
const copyHeaders = (from: MsgHdrs | undefined): MsgHdrs => {
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

/** Puts the message into `DLQ` with its reason, and answers once it is stored there. */
export const sendDeadLetter = async (link: NatsLink, letter: DeadLetter): Promise<void> => {
  await jetstream(link.connection).publish(deadLetterSubject(letter.consumer), letter.data, {
    msgID: `${letter.consumer}:${letter.id}`,
    headers: headersOf(letter),
  });
};

/** The same for a message that is gone anyway, such as a request without a reply subject: nothing waits for it. */
export const publishDeadLetter = (link: NatsLink, letter: DeadLetter): void =>
  link.connection.publish(deadLetterSubject(letter.consumer), letter.data, { headers: headersOf(letter) });
