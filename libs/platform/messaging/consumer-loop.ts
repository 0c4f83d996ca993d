import { AckPolicy, DeliverPolicy, jetstream } from '@nats-io/jetstream';
import type { Consumer, ConsumerConfig, ConsumerMessages, JetStreamManager, JsMsg } from '@nats-io/jetstream';
import { nanos } from '@nats-io/transport-node';
import type { z } from 'zod';
import type { Logger } from '@antiphon/observability';
import { streamOf } from './define-consumer.js';
import type { ConsumerSettings } from './define-consumer.js';
import { DEFAULT_ACK_WAIT_MS } from './message-worker.js';
import type { NatsLink } from './nats-link.js';
import { JETSTREAM_CODES, STREAMS, ensureStream, jetstreamCode, managerOf } from './streams.js';
import { createWakeUp } from './wake-up.js';

/** Brings one consumer's messages for as long as it runs, through every loss of connection, stream and consumer. */
export interface ConsumerLoop {
  /** True while messages can arrive. */
  isConsuming(): boolean;
  /** Ends the loop: no message is taken any more; those in the buffer go back. */
  stop(): Promise<void>;
}

export interface LoopOptions {
  readonly settings: ConsumerSettings<z.ZodType>;
  /** Messages that are asked for ahead of their being taken. */
  readonly prefetch: number;
  readonly link: NatsLink;
  readonly logger: Logger;
  /** Settles once a further message can be begun. */
  readonly room: () => Promise<void>;
  readonly begin: (message: JsMsg) => void;
}

/** One pull request stays open this long. Its heartbeat tells within twice its interval that the server is gone. */
const PULL_EXPIRES_MS = 30_000;
const PULL_HEARTBEAT_MS = 2_000;
/** Deliveries without acknowledgement over all processes; those that wait for their retry are among them. */
const MAX_ACK_PENDING = 1_000;
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
    if (jetstreamCode(error) !== JETSTREAM_CODES.consumerExistsDifferently) throw error;
    return manager.consumers.update(stream, settings.durable, config);
  });
  return jetstream(link.connection).consumers.getConsumerFromInfo(info);
};

const openMessages = async (manager: JetStreamManager, options: LoopOptions): Promise<ConsumerMessages> => {
  await ensureStream(manager, STREAMS.DLQ);
  const consumer = await ensureConsumer(manager, options);
  return consumer.consume({
    max_messages: options.prefetch,
    expires: PULL_EXPIRES_MS,
    idle_heartbeat: PULL_HEARTBEAT_MS,
    abort_on_missing_resource: true,
  });
};

export const startConsumerLoop = (options: LoopOptions): ConsumerLoop => {
  const { settings, link, logger, room, begin } = options;
  const nap = createWakeUp();
  let messages: ConsumerMessages | undefined;
  let stopping = false;

  const drain = async (source: ConsumerMessages): Promise<void> => {
    for await (const message of source) {
      if (!stopping) await room();
      // What waited in our buffer while we stopped goes to another process now, not after the ack wait.
      if (stopping) message.nak();
      else begin(message);
    }
  };

  const consumeOnce = async (manager: JetStreamManager): Promise<void> => {
    messages = await openMessages(manager, options);
    if (stopping) messages.stop();
    await drain(messages).finally(() => (messages = undefined));
  };

  const run = async (): Promise<void> => {
    const manager = await managerOf(link.connection);
    for (let failures = 0; !stopping && !link.connection.isClosed(); failures++) {
      const startedAt = Date.now();
      try {
        if (link.isConnected()) await consumeOnce(manager);
      } catch (error) {
        logger.info(
          { err: error, consumer: settings.durable },
          'a consumer lost its stream; taking it up again',
        );
      }
      if (Date.now() - startedAt > PULL_HEARTBEAT_MS) failures = 0;
      if (!stopping) await nap.sleep(RETRY_MS[Math.min(failures, RETRY_MS.length - 1)] ?? 0);
    }
  };

  const stopListening = link.onReconnect(() => {
    // Left alone, the library may wait out a whole pull request before it looks whether its consumer is still there.
    messages?.stop();
    nap.wake();
  });
  const running = run();
  return {
    isConsuming: () => messages !== undefined,
    stop: async () => {
      stopping = true;
      stopListening();
      nap.wake();
      // Nothing new arrives from here on; what has arrived still comes out of the iterator.
      messages?.stop();
      await running;
    },
  };
};
