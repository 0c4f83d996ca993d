import type { JsMsg } from '@nats-io/jetstream';
import type { z } from 'zod';
import { MAX_LOST_PROCESSES } from '@antiphon/database';
import type { WorkStarts } from '@antiphon/database';
import { PROCESS_LANE, failpoint, invalid, isAppError } from '@antiphon/kernel';
import type { TrialLane } from '@antiphon/kernel';
import { contextFrom, countError, runWithContext, withSpan } from '@antiphon/observability';
import type { Logger, RequestContext, SpanStart } from '@antiphon/observability';
import { HEADERS } from '@antiphon/contracts/messaging';
import type { NatsLink } from '../link/nats-link.js';
import { EVENT_HEADERS } from '../relay/event-message.js';
import { parseAs, parseJson } from '../requests/wire.js';
import { DEFAULT_ACK_POLICY, decideAck } from './ack-policy.js';
import type { AckPolicy, Verdict } from './ack-policy.js';
import { sendDeadLetter } from './dead-letters.js';
import type { ConsumerSettings, MessageHandler, MessageMeta } from './define-consumer.js';
import type { DeliveryLedger } from './delivery-ledger.js';

export interface WorkerOptions<Schema extends z.ZodType> {
  readonly settings: ConsumerSettings<Schema>;
  readonly handle: MessageHandler<Schema>;
  readonly link: NatsLink;
  readonly logger: Logger;
  readonly ledger: DeliveryLedger;
  /** Counts of starts of messages whose earlier delivery had no outcome. Absent: not counted. */
  readonly starts?: WorkStarts | undefined;
  /** Starts suspicious messages alone. Default: the lane of the process. */
  readonly lane?: TrialLane | undefined;
}

/** Kind of the counted starts. */
const MESSAGE = 'message';
/** Counted starts after which a message is given up: its first delivery was not counted. */
const MAX_COUNTED_STARTS = MAX_LOST_PROCESSES - 1;

export const DEFAULT_ACK_WAIT_MS = 10_000;
/**
 * Maximum deliveries without an outcome: such a message kills its worker, or is never acknowledged
 * in time.
 */
const MAX_DELIVERIES_WITHOUT_OUTCOME = 20;
/** Delay of a message whose dead letter could not be stored, ms. */
const RETRY_DEAD_LETTER_MS = 5_000;

const metaOf = (message: JsMsg): MessageMeta => ({
  messageId: message.headers?.get('Nats-Msg-Id') || `${message.info.stream}:${message.seq}`,
  subject: message.subject,
  sequence: message.seq,
  deliveryCount: message.info.deliveryCount,
});

const spanOf = (settings: Pick<ConsumerSettings<z.ZodType>, 'durable' | 'subject'>): SpanStart => ({
  name: `process ${settings.durable}`,
  role: 'consumer',
  attributes: {
    'messaging.system': 'nats',
    'messaging.operation.type': 'process',
    'messaging.destination.name': settings.subject,
    'messaging.consumer.group.name': settings.durable,
  },
});

/** Pattern of an event's subject: its workspace and, for a session's event, the session's id. */
const EVENT_SUBJECT = /^evt\.([^.]+)\.(?:session\.session-(.+)$)?/;

const contextOf = (service: string, { headers, subject }: JsMsg): RequestContext => {
  const [, workspace, sessionId] = EVENT_SUBJECT.exec(subject) ?? [];
  const context = contextFrom(service, {
    correlationId: headers?.get(HEADERS.correlationId),
    causationId: headers?.get('Nats-Msg-Id'),
    traceparent: headers?.get(HEADERS.traceparent),
    sessionId,
  });
  return workspace === undefined ? context : { ...context, workspace };
};

interface PendingAck {
  readonly message: JsMsg;
  readonly done: () => void;
  readonly fail: (error: unknown) => void;
}

/**
 * Batches the acknowledgements of one round of the event loop into one write: most messages of a
 * busy stream are skipped, many at a time.
 */
class AckBatcher {
  #pending: PendingAck[] = [];

  ack(message: JsMsg): Promise<void> {
    return new Promise((done, fail) => {
      if (this.#pending.push({ message, done, fail }) === 1) setImmediate(() => this.#flush());
    });
  }

  #flush(): void {
    const batch = this.#pending;
    this.#pending = [];
    for (const { message, done, fail } of batch)
      try {
        message.ack();
        done();
      } catch (error) {
        fail(error);
      }
  }
}

/**
 * Sends heartbeats for a message in progress, so that the server does not redeliver it. Returns a
 * stop function.
 */
const startHeartbeat = (link: NatsLink, message: JsMsg, ackWaitMs: number): (() => void) => {
  const timer = setInterval(
    () => {
      if (link.connection.isClosed()) clearInterval(timer);
      else message.working();
    },
    Math.max(50, Math.floor(ackWaitMs / 3)),
  );
  return () => clearInterval(timer);
};

/** Processes messages of one consumer, each from its delivery to its acknowledgement. */
export class MessageWorker<Schema extends z.ZodType> {
  readonly #options: WorkerOptions<Schema>;
  readonly #policy: AckPolicy;
  readonly #span: SpanStart;
  readonly #acks = new AckBatcher();
  readonly #ackWaitMs: number;
  readonly #isOrdered: boolean;
  /** Counted names of the messages that are being handled. */
  readonly #handling = new Set<string>();

  constructor(options: WorkerOptions<Schema>) {
    const { settings } = options;
    this.#options = options;
    this.#policy = { ...DEFAULT_ACK_POLICY, ...settings.policy };
    this.#span = spanOf(settings);
    this.#ackWaitMs = settings.ackWaitMs ?? DEFAULT_ACK_WAIT_MS;
    this.#isOrdered = settings.order === 'subject';
  }

  /** Processes one message; never rejects. */
  async process(message: JsMsg): Promise<void> {
    const { link, logger, settings } = this.#options;
    try {
      // Most messages of a busy stream: they need no context of their own.
      if (!this.#isOrdered && !this.#isWanted(message)) await this.#succeed(message);
      else await runWithContext(contextOf(link.service, message), () => this.#attempt(message));
    } catch (error) {
      // An acknowledgement needs a connection; without one the server delivers the message again.
      const fields = { err: error, consumer: settings.durable, subject: message.subject };
      logger.warn(fields, 'message not acknowledged');
    }
  }

  /**
   * Releases the messages that are being handled, for a process that stops in order. It is not
   * counted as one that they lost.
   */
  async release(): Promise<void> {
    const { starts } = this.#options;
    const items = [...this.#handling];
    this.#handling.clear();
    if (starts) await Promise.all(items.map((item) => starts.release(MESSAGE, item)));
  }

  async #attempt(message: JsMsg): Promise<void> {
    const { ledger, link } = this.#options;
    const meta = metaOf(message);
    const { subject, sequence } = meta;
    const waitMs = this.#isOrdered ? ledger.holdTime(subject, sequence, performance.now()) : 0;
    if (waitMs > 0) return this.#retry(message, waitMs, true);
    if (!this.#isWanted(message)) return this.#succeed(message);
    const stopHeartbeat = startHeartbeat(link, message, this.#ackWaitMs);
    try {
      const { starts } = this.#options;
      const isRepeated = meta.deliveryCount > 1 && !ledger.hasSeen(meta.sequence);
      ledger.see(meta.sequence);
      if (!isRepeated) this.#handling.add(this.#itemOf(meta));
      await withSpan(this.#span, () =>
        starts && isRepeated ? this.#handleAlone(message, meta, starts) : this.#handle(message, meta),
      );
      await this.#succeed(message);
    } catch (error) {
      await this.#fail(message, meta, error);
    } finally {
      stopHeartbeat();
      this.#handling.delete(this.#itemOf(meta));
    }
  }

  #itemOf({ sequence }: MessageMeta): string {
    return `${this.#options.settings.durable}@${sequence}`;
  }

  #isWanted(message: JsMsg): boolean {
    const { types } = this.#options.settings;
    const type = message.headers?.get(EVENT_HEADERS.type);
    return types === undefined || !type || types.includes(type);
  }

  /**
   * Handles a message whose earlier delivery had no outcome in this process, alone and counted: the
   * process that had it may have ended by it.
   */
  async #handleAlone(message: JsMsg, meta: MessageMeta, starts: WorkStarts): Promise<void> {
    const item = this.#itemOf(meta);
    if ((await starts.read(MESSAGE, item)) >= MAX_COUNTED_STARTS) {
      await starts.end(MESSAGE, item);
      throw invalid(
        'MESSAGING.PROCESS_LOST',
        `${MAX_LOST_PROCESSES} processes that handled the message were lost, and it may be the reason`,
      );
    }
    const leave = await (this.#options.lane ?? PROCESS_LANE).enter();
    try {
      await starts.begin(MESSAGE, item);
      this.#handling.add(item);
      await this.#handle(message, meta);
    } finally {
      leave();
      // A count that stays costs one trial. A released one is of earlier processes.
      if (this.#handling.delete(item)) await starts.end(MESSAGE, item).catch(() => undefined);
    }
  }

  async #handle(message: JsMsg, meta: MessageMeta): Promise<void> {
    const { handle, ledger, settings } = this.#options;
    await failpoint('work.message.begun', () => [settings.durable, ...Object.values(meta)].join(' '));
    if (ledger.countFailures(meta.sequence, meta.deliveryCount) > MAX_DELIVERIES_WITHOUT_OUTCOME)
      throw invalid(
        'MESSAGING.NO_OUTCOME',
        `the message was delivered more than ${MAX_DELIVERIES_WITHOUT_OUTCOME} times, and no handler finished`,
      );
    if (message.headers?.has(EVENT_HEADERS.omitted))
      throw invalid(
        'MESSAGING.EVENT_TOO_LARGE',
        'the event is larger than a message may be; it is in the log',
      );
    const body = parseJson(message.data, 'MESSAGING.INVALID');
    await handle(parseAs(settings.schema, body, 'MESSAGING.INVALID'), meta);
  }

  async #succeed(message: JsMsg): Promise<void> {
    this.#options.ledger.settle(message.subject, message.seq);
    await this.#acks.ack(message);
  }

  async #fail(message: JsMsg, meta: MessageMeta, error: unknown): Promise<void> {
    const failures = this.#options.ledger.countFailures(meta.sequence, meta.deliveryCount);
    const verdict = decideAck(this.#policy, error, failures, meta.deliveryCount);
    this.#log(verdict, error, meta);
    if (verdict.action === 'retry') return this.#retry(message, verdict.delayMs, verdict.excused);
    if (verdict.action === 'dead-letter') return this.#giveUp(message, meta, error);
    await this.#succeed(message);
  }

  #retry(message: JsMsg, delayMs: number, excused: boolean): void {
    const { ledger } = this.#options;
    if (excused) ledger.excuse(message.seq);
    if (this.#isOrdered) {
      const retryAt = performance.now() + delayMs;
      ledger.hold(message.subject, message.seq, retryAt, retryAt + this.#ackWaitMs);
    }
    message.nak(delayMs);
  }

  async #giveUp(message: JsMsg, meta: MessageMeta, error: unknown): Promise<void> {
    const { ledger, link, logger, settings } = this.#options;
    const { subject, data, headers } = message;
    const { deliveryCount } = meta;
    const id = `${message.info.stream}:${meta.sequence}:${meta.messageId}`;
    try {
      const consumer = settings.durable;
      await sendDeadLetter(link, { consumer, id, subject, data, headers, error, deliveryCount });
    } catch (cause) {
      logger.warn({ err: cause, ...meta }, 'dead letter not stored, retrying');
      return this.#retry(message, RETRY_DEAD_LETTER_MS, true);
    }
    ledger.settle(subject, meta.sequence);
    message.term(isAppError(error) ? error.code : 'INTERNAL.UNEXPECTED');
  }

  #log(verdict: Verdict, error: unknown, meta: MessageMeta): void {
    const { logger, settings } = this.#options;
    countError('message', error);
    const fields = { err: error, consumer: settings.durable, ...meta };
    if (verdict.action === 'ack') logger.info(fields, 'message rejected by a rule');
    else if (verdict.action === 'retry')
      logger.warn({ ...fields, delayMs: verdict.delayMs }, 'message failed, retrying');
    else logger.error({ ...fields, alert: verdict.alert }, 'message moved to dead letters');
  }
}
