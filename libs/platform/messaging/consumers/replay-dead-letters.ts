import type { Msg, MsgHdrs } from '@nats-io/transport-node';
import type { z } from 'zod';
import { isAppError } from '@antiphon/kernel';
import { runWithContext } from '@antiphon/observability';
import type { Logger } from '@antiphon/observability';
import type { NatsLink } from '../link/nats-link.js';
import { STREAMS, openJetStreamManager } from '../link/streams.js';
import { translateRequestError } from '../requests/request-client.js';
import { contextFromHeaders, fromWireError, parseAs, parseJson, toWireError } from '../requests/wire.js';
import type { WireReply } from '../requests/wire.js';
import { DLQ_HEADERS, copyHeaders, readDeadLetter, requestDeadLetters } from './dead-letters.js';
import type { StoredDeadLetter } from './dead-letters.js';
import type { ConsumerSettings, MessageHandler, MessageMeta } from './define-consumer.js';

/** Returns the subject on which a consumer handles its dead letters again. */
const replaySubject = (service: string, durable: string): string => `cmd.${service}.replay.${durable}`;

/** Header with the letter's own id, `<stream>:<sequence>:<message id>`. */
const REPLAY_ID = 'x-dlq-id';
const REPLAY_TIMEOUT_MS = 30_000;

const metaOf = ({ headers, subject }: Msg): MessageMeta => {
  const [, sequence = '0', ...id] = (headers?.get(REPLAY_ID) ?? '').split(':');
  return {
    messageId: id.join(':'),
    subject: headers?.get(DLQ_HEADERS.subject) ?? subject,
    sequence: Number(sequence),
    deliveryCount: Number(headers?.get(DLQ_HEADERS.deliveries) ?? 0) + 1,
  };
};

export interface ReplayServer<Schema extends z.ZodType> {
  readonly settings: ConsumerSettings<Schema>;
  readonly handle: MessageHandler<Schema>;
  readonly link: NatsLink;
  readonly logger: Logger;
}

const replay = async <Schema extends z.ZodType>(
  { settings, handle, logger }: ReplayServer<Schema>,
  message: Msg,
): Promise<WireReply> => {
  try {
    const body = parseJson(message.data, 'MESSAGING.INVALID');
    await handle(parseAs(settings.schema, body, 'MESSAGING.INVALID'), metaOf(message));
    return { ok: true, result: {} };
  } catch (error) {
    // A rejection by a business rule is an outcome: the letter has been handled.
    if (isAppError(error) && error.kind === 'rejected') return { ok: true, result: {} };
    logger.warn({ err: error, consumer: settings.durable }, 'dead letter replay failed');
    return { ok: false, error: toWireError(error) };
  }
};

/** Serves replays of a consumer's dead letters; returns a function that stops it. */
export const serveReplays = <Schema extends z.ZodType>(server: ReplayServer<Schema>): (() => void) => {
  const { link, settings } = server;
  const subscription = link.connection.subscribe(replaySubject(link.service, settings.durable), {
    queue: link.service,
    callback: (error, message) => {
      if (error) return;
      const context = contextFromHeaders(link.service, message.headers);
      void runWithContext(context, () => replay(server, message)).then((reply) =>
        message.respond(JSON.stringify(reply)),
      );
    },
  });
  return () => subscription.unsubscribe();
};

/**
 * Returns the service of a durable: service names contain no `-`, and a durable begins with one.
 */
const serviceOf = (consumer: string): string => consumer.slice(0, consumer.indexOf('-'));

const replayHeaders = ({ headers, consumer }: StoredDeadLetter): MsgHdrs => {
  const copy = copyHeaders(headers);
  copy.set(REPLAY_ID, headers.get('Nats-Msg-Id').slice(consumer.length + 1));
  return copy;
};

/** Deletes a dead letter. Another operator may have replayed and deleted it at the same time. */
const deleteDeadLetter = async (link: NatsLink, sequence: number): Promise<void> => {
  const manager = await openJetStreamManager(link.connection);
  await manager.streams.deleteMessage(STREAMS.DLQ.name, sequence).catch(async (error: unknown) => {
    const next = await readDeadLetter(link, sequence);
    if (next?.sequence === sequence) throw error;
  });
};

/**
 * Replays a dead letter: its service handles it again, and it is deleted on success. A request
 * without a reply subject is sent again to its original subject. Rejects with the service's error
 * as an AppError; the letter then stays in `DLQ`.
 */
export const replayDeadLetter = async (link: NatsLink, letter: StoredDeadLetter): Promise<void> => {
  const service = serviceOf(letter.consumer);
  const isRequest = letter.consumer === requestDeadLetters(service);
  const subject = isRequest ? letter.subject : replaySubject(service, letter.consumer);
  const options = { timeout: REPLAY_TIMEOUT_MS, headers: replayHeaders(letter) };
  const response = await link.connection.request(subject, letter.data, options).catch((error: unknown) => {
    throw translateRequestError(subject, error);
  });
  const reply = parseJson(response.data, 'MESSAGING.BAD_REPLY') as WireReply;
  if (!reply.ok) throw fromWireError(reply.error);
  await deleteDeadLetter(link, letter.sequence);
};
