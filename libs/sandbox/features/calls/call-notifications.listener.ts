import { Inject, Injectable } from '@nestjs/common';
import type { OnApplicationBootstrap, OnApplicationShutdown } from '@nestjs/common';
import type { Msg, Subscription } from '@nats-io/transport-node';
import {
  CALLER_CLOCK_SUBJECT,
  CallerTime,
  TOOL_CANCEL_SUBJECT,
  ToolCancel,
  findCall,
} from '@antiphon/contracts/sandbox';
import type { NatsLink } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import { LOGGER, NATS } from '@antiphon/service-host';
import { SANDBOX } from './sandbox.js';
import type { Sandbox } from './sandbox.js';

/**
 * Handles the messages that each sandbox process receives: cancellations, callers' clocks, and
 * lookups of calls whose reply is late. Stays subscribed until shutdown, because calls finish until
 * then.
 */
@Injectable()
export class CallNotificationsListener implements OnApplicationBootstrap, OnApplicationShutdown {
  private subscriptions: readonly Subscription[] = [];

  constructor(
    @Inject(SANDBOX) private readonly sandbox: Pick<Sandbox, 'calls'>,
    @Inject(NATS) private readonly nats: NatsLink,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  onApplicationBootstrap(): void {
    this.subscriptions = [
      this.subscribe(TOOL_CANCEL_SUBJECT, (message) => this.cancel(message)),
      this.subscribe(CALLER_CLOCK_SUBJECT, (message) => this.observe(message)),
      this.subscribe(findCall.subject, (message) => void this.find(message)),
    ];
  }

  onApplicationShutdown(): void {
    if (!this.nats.isConnected()) return;
    for (const subscription of this.subscriptions) subscription.unsubscribe();
  }

  private subscribe(subject: string, handle: (message: Msg) => void): Subscription {
    return this.nats.connection.subscribe(subject, {
      callback: (error, message) => {
        if (error) this.logger.error({ err: error, subject }, 'call notification subscription failed');
        else handle(message);
      },
    });
  }

  private cancel(message: Msg): void {
    try {
      this.sandbox.calls.cancel(ToolCancel.parse(message.json()));
    } catch (error) {
      this.logger.warn({ err: error }, 'call cancellation refused');
    }
  }

  private observe(message: Msg): void {
    try {
      this.sandbox.calls.clocks.observe(CallerTime.parse(message.json()));
    } catch (error) {
      this.logger.warn({ err: error }, 'caller clock refused');
    }
  }

  /** Responds only when this process knows the call, so that another process can respond. */
  private async find(message: Msg): Promise<void> {
    try {
      const result = await this.sandbox.calls.find(findCall.request.parse(message.json()));
      if (result) message.respond(JSON.stringify({ ok: true, result }));
    } catch (error) {
      this.logger.warn({ err: error }, 'call lookup failed');
    }
  }
}
