import { Inject, Injectable } from '@nestjs/common';
import type { OnApplicationBootstrap, OnApplicationShutdown } from '@nestjs/common';
import type { Msg, Subscription } from '@nats-io/transport-node';
import { TOOL_CANCEL_SUBJECT, ToolCancel } from '@antiphon/contracts/sandbox';
import type { NatsLink } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import { LOGGER, NATS } from '@antiphon/service-host';
import { SANDBOX } from '../sandbox.js';
import type { Sandbox } from '../sandbox.js';

/** Hears of each call that nobody waits for any more; every sandbox process does, one of them runs it. */
@Injectable()
export class CancelCallListener implements OnApplicationBootstrap, OnApplicationShutdown {
  private subscription: Subscription | undefined;

  constructor(
    @Inject(SANDBOX) private readonly sandbox: Sandbox,
    @Inject(NATS) private readonly nats: NatsLink,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  onApplicationBootstrap(): void {
    this.subscription = this.nats.connection.subscribe(TOOL_CANCEL_SUBJECT, {
      callback: (error, message) => {
        if (error) this.logger.error({ err: error }, 'the subscription to cancelled calls failed');
        else this.hear(message);
      },
    });
  }

  onApplicationShutdown(): void {
    if (this.nats.isConnected()) this.subscription?.unsubscribe();
  }

  private hear(message: Msg): void {
    try {
      this.sandbox.calls.cancel(ToolCancel.parse(message.json()));
    } catch (error) {
      this.logger.warn({ err: error }, 'a cancellation was refused');
    }
  }
}
