import type { Msg } from '@nats-io/transport-node';
import type { z } from 'zod';
import { isAppError } from '@antiphon/kernel';
import { runWithContext } from '@antiphon/observability';
import type { Logger } from '@antiphon/observability';
import { DLQ_HEADERS } from './dead-letter.js';
import type { ConsumerSettings, MessageHandler, MessageMeta } from './define-consumer.js';
import type { NatsLink } from '../link/nats-link.js';
import { contextOf, parseAs, parseJson, toWireError } from '../requests/wire.js';
import type { WireReply } from '../requests/wire.js';

/** Where a consumer takes its dead letters again: a request that is answered when the handler has ended. */
export const replaySubject = (service: string, durable: string): string => `cmd.${service}.replay.${durable}`;

/** The letter's own id, `<stream>:<sequence>:<message id>`, rides along in this header. */
export const REPLAY_ID = 'x-dlq-id';

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

/** Handles dead letters of a consumer again for whoever asks; answers how to stop. A rule that says no is an outcome. */
export const serveReplays = <Schema extends z.ZodType>(options: ReplayServer<Schema>): (() => void) => {
  const { settings, handle, link, logger } = options;
  const handleAgain = async (message: Msg): Promise<WireReply> => {
    try {
      const body = parseJson(message.data, 'MESSAGING.INVALID');
      await handle(parseAs(settings.schema, body, 'MESSAGING.INVALID'), metaOf(message));
      return { ok: true, result: {} };
    } catch (error) {
      if (isAppError(error) && error.kind === 'rejected') return { ok: true, result: {} };
      logger.warn({ err: error, consumer: settings.durable }, 'a dead letter failed again; it stays');
      return { ok: false, error: toWireError(error) };
    }
  };
  const subscription = link.connection.subscribe(replaySubject(link.service, settings.durable), {
    queue: link.service,
    callback: (error, message) => {
      if (error) return;
      const reply = (answer: WireReply): void => void message.respond(JSON.stringify(answer));
      void runWithContext(contextOf(link.service, message.headers), () => handleAgain(message)).then(reply);
    },
  });
  return () => subscription.unsubscribe();
};
