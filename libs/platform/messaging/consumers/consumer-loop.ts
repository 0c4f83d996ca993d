import { AckPolicy, DeliverPolicy, jetstream } from '@nats-io/jetstream';
import type { Consumer, ConsumerConfig, ConsumerMessages, JetStreamManager, JsMsg } from '@nats-io/jetstream';
import { nanos } from '@nats-io/transport-node';
import type { z } from 'zod';
import { createWakeSignal } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { streamOf } from './define-consumer.js';
import type { ConsumerSettings } from './define-consumer.js';
import { DEFAULT_ACK_WAIT_MS } from './message-worker.js';
import type { NatsLink } from '../link/nats-link.js';
import {
  JETSTREAM_CODES,
  STREAMS,
  ensureStream,
  jetstreamErrorCode,
  openJetStreamManager,
} from '../link/streams.js';

/** Brings one consumer's messages for as long as it runs, through every loss of connection, stream and consumer. */
export interface ConsumerLoop {
  /** True while messages can arrive. */
  isConsuming(): boolean;
  /** Ends the loop: no message is taken any more; those in the buffer go back. */
  stop(): Promise<void>;
}

export interface LoopOptions {
  readonly settings: ConsumerSettings<z.ZodType>;
  readonly link: NatsLink;
  readonly logger: Logger;
  /** Settles once further messages can be begun, and answers how many. */
  readonly room: () => Promise<number>;
  readonly begin: (message: JsMsg) => void;
}

/**
 * One pull request stays open this long, the least that the library takes. A stopping consumer lets its last one run
 * out: what the server sends to a subscription that has just been ended would be lost until the ack wait.
 */
const PULL_MS = 1_000;
/** Deliveries without acknowledgement over all processes; those that wait for their retry are among them. */
const MAX_ACK_PENDING = 1_000;
/** What is handed back must not come to our own last request again. */
const HAND_BACK_MS = PULL_MS;
/** A stream that is being made again, or a server that restarts, is back by then. */
const QUIET_FAILURES = 4;
const RETRY_MS = [250, 500, 1_000, 2_000, 5_000];

const configOf = (settings: ConsumerSettings<z.ZodType>): Partial<ConsumerConfig> => ({
  durable_name: settings.durable,
  filter_subject: settings.subject,
  ack_policy: AckPolicy.Explicit,
  deliver_policy: DeliverPolicy.All,
  ack_wait: nanos(settings.ackWaitMs ?? DEFAULT_ACK_WAIT_MS),
  max_ack_pending: MAX_ACK_PENDING,
  // Giving up is ours: the server would only stop delivering, and the message would be in nobody's hands.
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

export const startConsumerLoop = (options: LoopOptions): ConsumerLoop => {
  const { settings, link, logger, room, begin } = options;
  const nap = createWakeSignal();
  let open: ConsumerMessages | undefined;
  let consuming = false;
  let stopping = false;

  const pull = async (consumer: Consumer): Promise<void> => {
    const free = await room();
    if (stopping) return;
    open = await consumer.fetch({ max_messages: free, expires: PULL_MS });
    for await (const message of open) {
      if (stopping) message.nak(HAND_BACK_MS);
      else begin(message);
    }
  };

  const consume = async (manager: JetStreamManager): Promise<void> => {
    await ensureStream(manager, STREAMS.DLQ);
    const consumer = await ensureConsumer(manager, options);
    consuming = true;
    while (!stopping && link.isConnected()) await pull(consumer);
  };

  const run = async (): Promise<void> => {
    const manager = await openJetStreamManager(link.connection);
    for (let failures = 0; !stopping && !link.connection.isClosed(); failures++) {
      const startedAt = performance.now();
      try {
        if (link.isConnected()) await consume(manager);
      } catch (error) {
        const level = failures < QUIET_FAILURES ? 'info' : 'warn';
        logger[level](
          { err: error, consumer: settings.durable },
          'a consumer lost its stream; taking it up again',
        );
      }
      consuming = false;
      if (performance.now() - startedAt > 2 * PULL_MS) failures = 0;
      if (!stopping) await nap.wait(RETRY_MS[Math.min(failures, RETRY_MS.length - 1)] ?? 0);
    }
  };

  const stopListening = link.onReconnect(() => {
    // The server has forgotten the request, and may have forgotten the consumer.
    open?.stop();
    nap.wake();
  });
  const running = run();
  return {
    isConsuming: () => consuming,
    stop: async () => {
      stopping = true;
      stopListening();
      nap.wake();
      await running;
    },
  };
};
