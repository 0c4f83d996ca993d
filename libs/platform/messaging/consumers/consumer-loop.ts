import { AckPolicy, DeliverPolicy, jetstream } from '@nats-io/jetstream';
import type { Consumer, ConsumerConfig, ConsumerMessages, JetStreamManager, JsMsg } from '@nats-io/jetstream';
import { nanos } from '@nats-io/transport-node';
import type { z } from 'zod';
import { backoffDelay, createWakeSignal } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import type { NatsLink } from '../link/nats-link.js';
import {
  JETSTREAM_CODES,
  STREAMS,
  ensureStream,
  jetstreamErrorCode,
  openJetStreamManager,
} from '../link/streams.js';
import { streamOf } from './define-consumer.js';
import type { ConsumerSettings } from './define-consumer.js';
import { DEFAULT_ACK_WAIT_MS } from './message-worker.js';

export interface LoopOptions {
  readonly settings: ConsumerSettings<z.ZodType>;
  readonly link: NatsLink;
  readonly logger: Logger;
  /** Waits until further messages can start; resolves with their number. */
  readonly waitForCapacity: () => Promise<number>;
  readonly start: (message: JsMsg) => void;
}

/**
 * Duration of one pull request, ms: the library's minimum. A stopping consumer lets its last pull
 * expire, because a message sent to a subscription that has just ended is lost until the ack wait.
 */
const PULL_MS = 1_000;
/**
 * Maximum unacknowledged deliveries over all processes; messages that wait for their retry count.
 */
const MAX_ACK_PENDING = 1_000;
/**
 * Redelivery delay of a message returned at shutdown: it must not arrive in this process's last
 * pull.
 */
const RETURN_DELAY_MS = PULL_MS;
/**
 * Failures logged at level info: a stream being recreated or a restarting server returns within
 * them.
 */
const QUIET_FAILURES = 4;
const BACKOFF = { firstMs: 250, maxMs: 5_000 };

const configOf = (settings: ConsumerSettings<z.ZodType>): Partial<ConsumerConfig> => ({
  durable_name: settings.durable,
  filter_subject: settings.subject,
  ack_policy: AckPolicy.Explicit,
  deliver_policy: DeliverPolicy.All,
  ack_wait: nanos(settings.ackWaitMs ?? DEFAULT_ACK_WAIT_MS),
  max_ack_pending: MAX_ACK_PENDING,
  // The consumer host gives messages up itself: the server would stop delivering without a dead
  // letter.
  max_deliver: -1,
});

const ensureConsumer = async (
  manager: JetStreamManager,
  { link, settings }: LoopOptions,
): Promise<Consumer> => {
  const stream = streamOf(settings.subject);
  const config = configOf(settings);
  const info = await manager.consumers.add(stream, config).catch((error: unknown) => {
    if (jetstreamErrorCode(error) !== JETSTREAM_CODES.consumerExistsDifferently) throw error;
    return manager.consumers.update(stream, settings.durable, config);
  });
  return jetstream(link.connection).consumers.getConsumerFromInfo(info);
};

/**
 * Pulls one consumer's messages until stopped, through every loss of connection, stream and
 * consumer.
 */
export class ConsumerLoop {
  readonly #options: LoopOptions;
  readonly #retryTimer = createWakeSignal();
  readonly #running: Promise<void>;
  readonly #unsubscribe: () => void;
  #pull: ConsumerMessages | undefined;
  #consuming = false;
  #stopping = false;

  constructor(options: LoopOptions) {
    this.#options = options;
    this.#unsubscribe = options.link.onReconnect(() => {
      // The server has lost the pull request, and perhaps the consumer.
      this.#pull?.stop();
      this.#retryTimer.wake();
    });
    this.#running = this.#run();
  }

  /** Returns true while messages can arrive. */
  isConsuming(): boolean {
    return this.#consuming;
  }

  /** Ends the loop: buffered messages return to the server, and no new one starts. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#unsubscribe();
    this.#retryTimer.wake();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { link } = this.#options;
    const manager = await openJetStreamManager(link.connection);
    for (let failures = 0; !this.#stopping && !link.connection.isClosed(); failures++) {
      const startedAt = performance.now();
      try {
        if (link.isConnected()) await this.#consume(manager);
      } catch (error) {
        this.#logFailure(error, failures);
      }
      this.#consuming = false;
      if (performance.now() - startedAt > 2 * PULL_MS) failures = 0;
      if (!this.#stopping) await this.#retryTimer.wait(backoffDelay(BACKOFF, failures));
    }
  }

  async #consume(manager: JetStreamManager): Promise<void> {
    await ensureStream(manager, STREAMS.DLQ);
    const consumer = await ensureConsumer(manager, this.#options);
    this.#consuming = true;
    while (!this.#stopping && this.#options.link.isConnected()) await this.#pullOnce(consumer);
  }

  async #pullOnce(consumer: Consumer): Promise<void> {
    const capacity = await this.#options.waitForCapacity();
    if (this.#stopping) return;
    this.#pull = await consumer.fetch({ max_messages: capacity, expires: PULL_MS });
    let received = 0;
    let waiting = 0;
    for await (const message of this.#pull) {
      received += 1;
      waiting = message.info.pending;
      if (this.#stopping) message.nak(RETURN_DELAY_MS);
      else this.#options.start(message);
    }
    const { gatherMs } = this.#options.settings;
    // A pull that was not filled has waited already.
    if (gatherMs !== undefined && received === capacity && waiting < capacity && !this.#stopping)
      await this.#retryTimer.wait(gatherMs);
  }

  #logFailure(error: unknown, failures: number): void {
    const { logger, settings } = this.#options;
    const level = failures < QUIET_FAILURES ? 'info' : 'warn';
    logger[level]({ err: error, consumer: settings.durable }, 'consumer interrupted, retrying');
  }
}
