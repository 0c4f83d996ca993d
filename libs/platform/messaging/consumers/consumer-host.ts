import type { z } from 'zod';
import type { Logger } from '@antiphon/observability';
import { startConsumerLoop } from './consumer-loop.js';
import type { ConsumerDefinition } from './define-consumer.js';
import { createDeliveryLedger } from './delivery-ledger.js';
import { createMessageWorker } from './message-worker.js';
import type { NatsLink } from '../link/nats-link.js';
import { serveReplays } from './serve-replays.js';
import { createWorkLanes } from './work-lanes.js';

export interface RunningConsumer {
  readonly durable: string;
  /** True while messages can arrive. */
  isConsuming(): boolean;
  /** Takes nothing more, lets handlers end within the deadline. */
  stop(): Promise<void>;
}

/** Runs JetStream consumers for as long as the process lives. */
export interface ConsumerHost {
  /**
   * Begins to consume and keeps at it. The consumer, and the dead letters' stream, are made when they are missing,
   * also while it runs; a missing stream is waited for until its owner has made it.
   */
  run<Schema extends z.ZodType, Dependencies>(
    definition: ConsumerDefinition<Schema, Dependencies>,
    dependencies: Dependencies,
  ): RunningConsumer;
  /** Stops every consumer: what is at work ends, what was not begun goes back at once. */
  stop(): Promise<void>;
}

export interface ConsumerHostOptions {
  readonly link: NatsLink;
  readonly logger: Logger;
  /** How long `stop` waits for handlers, default 10,000 ms. */
  readonly drainTimeoutMs?: number;
}

const DEFAULT_CONCURRENCY = 16;

const runConsumer = <Schema extends z.ZodType, Dependencies>(
  definition: ConsumerDefinition<Schema, Dependencies>,
  dependencies: Dependencies,
  { link, logger, drainTimeoutMs = 10_000 }: ConsumerHostOptions,
): RunningConsumer => {
  const { durable, order = 'none', concurrency = DEFAULT_CONCURRENCY } = definition;
  if (!durable.startsWith(`${link.service}-`))
    throw new Error(`a durable of ${link.service} must begin with its name`);
  const lanes = createWorkLanes(concurrency);
  const handle = definition.handle(dependencies);
  const work = createMessageWorker({
    settings: definition,
    handle,
    link,
    logger,
    ledger: createDeliveryLedger(),
  });
  const loop = startConsumerLoop({
    settings: definition,
    link,
    logger,
    room: async () => {
      await lanes.room();
      return concurrency - lanes.size;
    },
    begin: (message) => lanes.run(order === 'subject' ? message.subject : undefined, () => work(message)),
  });
  const stopReplays = serveReplays({ settings: definition, handle, link, logger });
  const stop = async (): Promise<void> => {
    stopReplays();
    const deadline = AbortSignal.timeout(drainTimeoutMs);
    const expired = new Promise<void>((resolve) => deadline.addEventListener('abort', () => resolve()));
    await Promise.race([loop.stop().then(() => lanes.idle()), expired]);
    if (lanes.size > 0)
      logger.warn({ consumer: durable, messages: lanes.size }, 'messages were still at work');
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
