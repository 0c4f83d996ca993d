import { Inject, Injectable } from '@nestjs/common';
import type { OnApplicationBootstrap, OnApplicationShutdown } from '@nestjs/common';
import type { Msg, Subscription } from '@nats-io/transport-node';
import { TOOL_WORKERS_ASK_SUBJECT, TOOL_WORKERS_SUBJECT, ToolWorkersHint } from '@antiphon/contracts/sandbox';
import type { NatsLink } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import { LOGGER, NATS } from '@antiphon/service-host';
import { RemoteToolRegistry } from './remote-tool-registry.js';
import { ToolWorkerTable, WORKER_TABLE_TICK_MS } from './tool-worker-table.js';

/** Asks the gateways for all programs that are connected to them. */
export const askForWorkers = (nats: NatsLink): void => {
  if (nats.isConnected()) nats.connection.publish(TOOL_WORKERS_ASK_SUBJECT, '');
};

/** Follows the messages of gateways about the programs that serve tools. */
@Injectable()
export class ToolWorkersListener implements OnApplicationBootstrap, OnApplicationShutdown {
  private subscription: Subscription | null = null;
  private timer: NodeJS.Timeout | null = null;

  constructor(
    @Inject(ToolWorkerTable) private readonly workers: ToolWorkerTable,
    @Inject(RemoteToolRegistry) private readonly registry: RemoteToolRegistry,
    @Inject(NATS) private readonly nats: NatsLink,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  onApplicationBootstrap(): void {
    this.subscription = this.nats.connection.subscribe(TOOL_WORKERS_SUBJECT, {
      callback: (error, message) => {
        if (error) this.logger.error({ err: error }, 'worker subscription failed');
        else this.observe(message);
      },
    });
    this.timer = setInterval(() => this.workers.tick(), WORKER_TABLE_TICK_MS).unref();
    askForWorkers(this.nats);
  }

  onApplicationShutdown(): void {
    if (this.timer !== null) clearInterval(this.timer);
    if (this.nats.isConnected()) this.subscription?.unsubscribe();
  }

  private observe(message: Msg): void {
    try {
      const changed = this.workers.observe(ToolWorkersHint.parse(message.json()));
      // A program may serve a version that another process has registered.
      if (changed !== undefined)
        this.registry
          .read(changed)
          .catch((error: unknown) => this.logger.warn({ err: error }, 'remote tools read failed'));
    } catch (error) {
      this.logger.warn({ err: error }, 'worker message refused');
    }
  }
}
