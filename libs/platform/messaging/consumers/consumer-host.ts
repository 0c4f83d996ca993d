import type { z } from 'zod';
import type { WorkStarts } from '@antiphon/database';
import { createKeyedQueue } from '@antiphon/kernel';
import type { TrialLane } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import type { NatsLink } from '../link/nats-link.js';
import { ConsumerLoop } from './consumer-loop.js';
import type { ConsumerDefinition } from './define-consumer.js';
import { DeliveryLedger } from './delivery-ledger.js';
import { MessageWorker } from './message-worker.js';
import { serveReplays } from './replay-dead-letters.js';

export interface RunningConsumer {
  readonly durable: string;
  /** Returns true while messages can arrive. */
  isConsuming(): boolean;
  /** Drains: starts no further message and waits for handlers until the timeout. */
  stop(): Promise<void>;
}

/** Runs JetStream consumers for the lifetime of the process. */
export interface ConsumerHost {
  /**
   * Starts a consumer and keeps it running. Creates the consumer and the stream of dead letters
   * whenever they are missing. Waits for a missing event stream until its owner has created it.
   */
  run<Schema extends z.ZodType, Dependencies>(
    definition: ConsumerDefinition<Schema, Dependencies>,
    dependencies: Dependencies,
  ): RunningConsumer;
  /** Stops every consumer: started messages finish, the others return to the server at once. */
  stop(): Promise<void>;
}

export interface ConsumerHostOptions {
  readonly link: NatsLink;
  readonly logger: Logger;
  /** Time limit of `stop` for running handlers. Default: 10,000 ms. */
  readonly drainTimeoutMs?: number;
  /** Counts of starts of messages (`MessageWorker`). */
  readonly starts?: WorkStarts;
  /** Starts suspicious messages alone. Default: the lane of the process. */
  readonly lane?: TrialLane;
}

const DEFAULT_CONCURRENCY = 16;

const runConsumer = <Schema extends z.ZodType, Dependencies>(
  definition: ConsumerDefinition<Schema, Dependencies>,
  dependencies: Dependencies,
  { link, logger, drainTimeoutMs = 10_000, starts, lane }: ConsumerHostOptions,
): RunningConsumer => {
  const { durable, order = 'none', concurrency = DEFAULT_CONCURRENCY } = definition;
  if (!durable.startsWith(`${link.service}-`))
    throw new Error(`a durable of ${link.service} must begin with its name`);
  const queue = createKeyedQueue(concurrency);
  const handle = definition.handle(dependencies);
  const ledger = new DeliveryLedger();
  const worker = new MessageWorker({ settings: definition, handle, link, logger, ledger, starts, lane });
  const loop = new ConsumerLoop({
    settings: definition,
    link,
    logger,
    waitForCapacity: async () => {
      await queue.waitForCapacity();
      return concurrency - queue.size;
    },
    start: (message) =>
      queue.run(order === 'subject' ? message.subject : undefined, () => worker.process(message)),
  });
  const stopReplays = serveReplays({ settings: definition, handle, link, logger });
  const stop = async (): Promise<void> => {
    stopReplays();
    const deadline = AbortSignal.timeout(drainTimeoutMs);
    const expired = new Promise<void>((resolve) => deadline.addEventListener('abort', () => resolve()));
    await Promise.race([loop.stop().then(() => queue.waitUntilIdle()), expired]);
    if (queue.size === 0) return;
    logger.warn({ consumer: durable, messages: queue.size }, 'messages unfinished at shutdown');
    await worker.release().catch((err: unknown) => {
      logger.warn({ work: 'message', err, consumer: durable }, 'work not released');
    });
  };
  return { durable, isConsuming: () => loop.isConsuming(), stop };
};

export const createConsumerHost = (options: ConsumerHostOptions): ConsumerHost => {
  const running: RunningConsumer[] = [];
  return {
    run: (definition, dependencies) => {
      const consumer = runConsumer(definition, dependencies, options);
      running.push(consumer);
      return consumer;
    },
    stop: async () => void (await Promise.all(running.map((consumer) => consumer.stop()))),
  };
};
