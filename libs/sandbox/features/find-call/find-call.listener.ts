import { Inject, Injectable } from '@nestjs/common';
import type { OnApplicationBootstrap, OnApplicationShutdown } from '@nestjs/common';
import type { Msg, Subscription } from '@nats-io/transport-node';
import { findCall } from '@antiphon/contracts/sandbox';
import type { NatsLink } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import { LOGGER, NATS } from '@antiphon/service-host';
import { SANDBOX } from '../sandbox.js';
import type { Sandbox } from '../sandbox.js';

/**
 * Says where a call is whose answer is late, when it is here: every sandbox process is asked, and one that does not know
 * the call leaves the answer to the others. It goes on to the end, for calls that this process still finishes.
 */
@Injectable()
export class FindCallListener implements OnApplicationBootstrap, OnApplicationShutdown {
  private subscription: Subscription | undefined;

  constructor(
    @Inject(SANDBOX) private readonly sandbox: Sandbox,
    @Inject(NATS) private readonly nats: NatsLink,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  onApplicationBootstrap(): void {
    this.subscription = this.nats.connection.subscribe(findCall.subject, {
      callback: (error, message) => {
        if (error) this.logger.error({ err: error }, 'the subscription to late calls failed');
        else void this.answer(message);
      },
    });
  }

  onApplicationShutdown(): void {
    if (this.nats.isConnected()) this.subscription?.unsubscribe();
  }

  private async answer(message: Msg): Promise<void> {
    try {
      const result = await this.sandbox.calls.find(findCall.request.parse(message.json()));
      if (result) message.respond(JSON.stringify({ ok: true, result }));
    } catch (error) {
      this.logger.warn({ err: error }, 'a question for a call could not be answered');
    }
  }
}
