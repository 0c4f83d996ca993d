import type { JsMsg } from '@nats-io/jetstream';
import type { z } from 'zod';
import { invalid, isAppError } from '@antiphon/kernel';
import { contextFrom, countError, runWithContext, withSpan } from '@antiphon/observability';
import type { Logger, RequestContext, SpanStart } from '@antiphon/observability';
import { HEADERS } from '@antiphon/contracts/messaging';
import { DEFAULT_ACK_POLICY, decideAck } from './ack-policy.js';
import type { AckPolicy, Verdict } from './ack-policy.js';
import { sendDeadLetter } from './dead-letter.js';
import type { ConsumerSettings, MessageHandler, MessageMeta } from './define-consumer.js';
import type { DeliveryLedger } from './delivery-ledger.js';
import { EVENT_HEADERS } from '../relay/event-message.js';
import type { NatsLink } from '../link/nats-link.js';
import { parseAs, parseJson } from '../requests/wire.js';

export interface WorkerOptions<Schema extends z.ZodType> {
  readonly settings: ConsumerSettings<Schema>;
  readonly handle: MessageHandler<Schema>;
  readonly link: NatsLink;
  readonly logger: Logger;
  readonly ledger: DeliveryLedger;
}

export const DEFAULT_ACK_WAIT_MS = 30_000;
/** A message that came this often without any outcome kills its worker, or nobody acknowledges in time. */
const MAX_DELIVERIES_WITHOUT_OUTCOME = 20;
/** When even the dead letter cannot be stored. */
const RETRY_DEAD_LETTER_MS = 5_000;

const metaOf = (message: JsMsg): MessageMeta => ({
  messageId: message.headers?.get('Nats-Msg-Id') || `${message.info.stream}:${message.seq}`,
  subject: message.subject,
  sequence: message.seq,
  deliveryCount: message.info.deliveryCount,
});

const spanOf = ({
  durable,
  subject,
}: Pick<ConsumerSettings<z.ZodType>, 'durable' | 'subject'>): SpanStart => ({
  name: `process ${durable}`,
  role: 'consumer',
  attributes: {
    'messaging.system': 'nats',
    'messaging.operation.type': 'process',
    'messaging.destination.name': subject,
    'messaging.consumer.group.name': durable,
  },
});

/** An event of a session names it in its subject. */
const SESSION_SUBJECT = /^evt\.[^.]+\.session\.session-(.+)$/;

const contextOf = (service: string, { headers, subject }: JsMsg): RequestContext =>
  contextFrom(service, {
    correlationId: headers?.get(HEADERS.correlationId),
    causationId: headers?.get('Nats-Msg-Id'),
    traceparent: headers?.get(HEADERS.traceparent),
    sessionId: SESSION_SUBJECT.exec(subject)?.[1],
  });

/**
 * Acknowledges together what ends in the same turn of the event loop, in one write: most messages of a busy stream are
 * passed over, many at a time.
 */
const createAcks = () => {
  let waiting: {
    readonly message: JsMsg;
    readonly done: () => void;
    readonly fail: (error: unknown) => void;
  }[] = [];
  const flush = (): void => {
    const batch = waiting;
    waiting = [];
    for (const { message, done, fail } of batch)
      try {
        message.ack();
        done();
      } catch (error) {
        fail(error);
      }
  };
  return {
    ack: (message: JsMsg): Promise<void> =>
      new Promise((done, fail) => {
        if (waiting.push({ message, done, fail }) === 1) setImmediate(flush);
      }),
  };
};

/** Tells the server now and then that the message is still worked on. */
const stayAlive = (link: NatsLink, message: JsMsg, ackWaitMs: number): (() => void) => {
  const timer = setInterval(
    () => {
      if (link.connection.isClosed()) clearInterval(timer);
      else message.working();
    },
    Math.max(50, Math.floor(ackWaitMs / 3)),
  );
  return () => clearInterval(timer);
};

/** Makes the function that takes one message from delivery to its acknowledgement; it never throws. */
export const createMessageWorker = <Schema extends z.ZodType>(
  options: WorkerOptions<Schema>,
): ((message: JsMsg) => Promise<void>) => {
  const { settings, link, logger, ledger } = options;
  const { durable, types, order = 'none', ackWaitMs = DEFAULT_ACK_WAIT_MS } = settings;
  const acks = createAcks();
  const span = spanOf(settings);
  const policy: AckPolicy = { ...DEFAULT_ACK_POLICY, ...settings.policy };

  const isWanted = (message: JsMsg): boolean => {
    const type = message.headers?.get(EVENT_HEADERS.type);
    return types === undefined || !type || types.includes(type);
  };

  const work = async (message: JsMsg, meta: MessageMeta): Promise<void> => {
    if (ledger.counted(meta.sequence, meta.deliveryCount) > MAX_DELIVERIES_WITHOUT_OUTCOME)
      throw invalid(
        'MESSAGING.NO_OUTCOME',
        'the message was delivered again and again, and no handler came to an end',
      );
    if (message.headers?.has(EVENT_HEADERS.omitted))
      throw invalid(
        'MESSAGING.EVENT_TOO_LARGE',
        'the event is larger than a message may be; it is in the log',
      );
    const body = parseJson(message.data, 'MESSAGING.INVALID');
    await options.handle(parseAs(settings.schema, body, 'MESSAGING.INVALID'), meta);
  };

  const retry = (message: JsMsg, delayMs: number, excused: boolean): void => {
    if (excused) ledger.excuse(message.seq);
    if (order === 'subject') {
      const retryAt = performance.now() + delayMs;
      ledger.hold(message.subject, message.seq, retryAt, retryAt + ackWaitMs);
    }
    message.nak(delayMs);
  };

  const giveUp = async (message: JsMsg, meta: MessageMeta, error: unknown): Promise<void> => {
    const { subject, data, headers } = message;
    const id = `${message.info.stream}:${meta.sequence}:${meta.messageId}`;
    try {
      await sendDeadLetter(link, {
        consumer: durable,
        id,
        subject,
        data,
        headers,
        error,
        deliveryCount: meta.deliveryCount,
      });
    } catch (cause) {
      logger.warn({ err: cause, ...meta }, 'a dead letter could not be stored; the message is kept for now');
      return retry(message, RETRY_DEAD_LETTER_MS, true);
    }
    ledger.settle(subject, meta.sequence);
    message.term(isAppError(error) ? error.code : 'INTERNAL.UNEXPECTED');
  };

  const log = (verdict: Verdict, error: unknown, meta: MessageMeta): void => {
    countError('message', error);
    const fields = { err: error, consumer: durable, ...meta };
    if (verdict.action === 'ack') logger.info(fields, 'a rule refused a message; it is done with');
    else if (verdict.action === 'retry')
      logger.warn({ ...fields, delayMs: verdict.delayMs }, 'a message failed; it will be tried again');
    else
      logger.error({ ...fields, alert: verdict.alert }, 'a message was given up; it is in the dead letters');
  };

  const fail = async (message: JsMsg, meta: MessageMeta, error: unknown): Promise<void> => {
    const failures = ledger.counted(meta.sequence, meta.deliveryCount);
    const verdict = decideAck(policy, error, failures, meta.deliveryCount);
    log(verdict, error, meta);
    if (verdict.action === 'retry') return retry(message, verdict.delayMs, verdict.excused);
    if (verdict.action === 'dead-letter') return giveUp(message, meta, error);
    await succeed(message);
  };

  const succeed = async (message: JsMsg): Promise<void> => {
    ledger.settle(message.subject, message.seq);
    await acks.ack(message);
  };

  const attempt = async (message: JsMsg): Promise<void> => {
    const meta = metaOf(message);
    const wait = order === 'subject' ? ledger.heldFor(message.subject, meta.sequence, performance.now()) : 0;
    if (wait > 0) return retry(message, wait, true);
    if (!isWanted(message)) return succeed(message);
    const relax = stayAlive(link, message, ackWaitMs);
    try {
      await withSpan(span, () => work(message, meta));
      await succeed(message);
    } catch (error) {
      await fail(message, meta, error);
    } finally {
      relax();
    }
  };

  return (message) =>
    runWithContext(contextOf(link.service, message), () => attempt(message)).catch((error: unknown) =>
      // Acknowledging needs a connection; without one the server delivers the message again.
      logger.warn(
        { err: error, consumer: durable, subject: message.subject },
        'a message could not be acknowledged',
      ),
    );
};
