import { NatsContext, ServerNats } from '@nestjs/microservices';
import type { MessageHandler } from '@nestjs/microservices';
import type { Msg, NatsConnection, Subscription } from '@nats-io/transport-node';
import { firstValueFrom, isObservable } from 'rxjs';
import { bug, isAppError } from '@antiphon/kernel';
import {
  countError,
  errorTypeOf,
  runWithContext,
  runWithContextFields,
  withSpan,
} from '@antiphon/observability';
import type { Logger, OpenSpan, RequestContext, SpanStart } from '@antiphon/observability';
import { publishDeadLetter } from '../consumers/dead-letter.js';
import type { AnyContract, Outcome } from './handle-request.js';
import type { NatsLink } from '../link/nats-link.js';
import { contextOf, isUnexpected, parseAs, parseJson, toWireError } from './wire.js';
import type { WireReply } from './wire.js';

export interface RequestServerOptions {
  readonly link: NatsLink;
  readonly logger: Logger;
  /** How long `close` waits for requests that are being worked on, default 10,000 ms. */
  readonly drainTimeoutMs?: number;
}

const contractOf = (handler: MessageHandler): AnyContract => {
  const { contract } = handler.extras as { contract?: AnyContract };
  if (!contract) throw new Error('a NATS handler must be declared by @HandleRequest');
  return contract;
};

/** What a request says of itself, for the log lines and spans of all that is done for it. */
const knownOf = (request: unknown): Pick<RequestContext, 'workspace' | 'sessionId' | 'turnId'> => {
  const { workspace, sessionId, turnId } = (request ?? {}) as Readonly<Record<string, unknown>>;
  return {
    ...(typeof workspace === 'string' ? { workspace } : {}),
    ...(typeof sessionId === 'string' ? { sessionId } : {}),
    ...(typeof turnId === 'string' ? { turnId } : {}),
  };
};

const spanOf = (subject: string): SpanStart => ({
  name: subject,
  role: 'server',
  attributes: {
    'messaging.system': 'nats',
    'messaging.operation.type': 'process',
    'messaging.destination.name': subject,
  },
});

const call = async (handler: MessageHandler, request: unknown, context: NatsContext): Promise<Outcome> => {
  const result: unknown = await handler(request, context);
  return (isObservable(result) ? await firstValueFrom(result) : result) as Outcome;
};

/**
 * Nest's NATS transport over the process's one connection (docs/adr/0020): it keeps Nest's handlers, guards and
 * interceptors, and replaces Nest's envelope by plain JSON with headers and its per-transport connection by ours.
 */
export class RequestServer extends ServerNats {
  readonly #link: NatsLink;
  readonly #logger: Logger;
  readonly #drainTimeoutMs: number;
  readonly #open: Subscription[] = [];
  readonly #working = new Set<Promise<void>>();

  constructor({ link, logger, drainTimeoutMs = 10_000 }: RequestServerOptions) {
    super({ queue: link.service });
    this.#link = link;
    this.#logger = logger;
    this.#drainTimeoutMs = drainTimeoutMs;
  }

  override createNatsClient(): Promise<NatsConnection> {
    return Promise.resolve(this.#link.connection);
  }

  override bindEvents(connection: NatsConnection): void {
    for (const subject of this.messageHandlers.keys())
      this.#open.push(
        connection.subscribe(subject, {
          queue: this.#link.service,
          callback: (error, message) => this.#receive(subject, error, message),
        }),
      );
  }

  // The link reports the connection's state once for the whole process.
  override async handleStatusUpdates(): Promise<void> {}

  /** Takes no new request, lets those at work finish within the deadline; the connection stays. */
  override async close(): Promise<void> {
    const open = this.#open.splice(0);
    if (this.#link.isConnected()) await Promise.all(open.map((subscription) => subscription.drain()));
    const deadline = AbortSignal.timeout(this.#drainTimeoutMs);
    const expired = new Promise<void>((resolve) => deadline.addEventListener('abort', () => resolve()));
    await Promise.race([Promise.all(this.#working), expired]);
    if (this.#working.size > 0)
      this.#logger.warn(
        { requests: this.#working.size },
        'requests were still at work when the service stopped',
      );
  }

  #receive(subject: string, error: Error | null, message: Msg): void {
    if (error) return this.#logger.error({ err: error, subject }, 'the subscription of a subject failed');
    const work = runWithContext(contextOf(this.#link.service, message.headers), () =>
      this.handleMessage(subject, message),
    );
    this.#working.add(work);
    void work.finally(() => this.#working.delete(work));
  }

  override handleMessage(subject: string, message: Msg): Promise<void> {
    return withSpan(spanOf(subject), (span) => this.#respond(subject, message, span));
  }

  async #respond(subject: string, message: Msg, span: OpenSpan): Promise<void> {
    const reply = await this.#answer(subject, message, span);
    if (!message.reply) return;
    try {
      message.respond(JSON.stringify(reply));
    } catch (error) {
      this.#logger.error({ err: error, subject }, 'a reply could not be sent');
      this.#respondFailure(message);
    }
  }

  // Too large or not JSON: the caller is told instead of left to time out. A closed connection tells nobody.
  #respondFailure(message: Msg): void {
    if (this.#link.connection.isClosed()) return;
    const error = bug(
      'MESSAGING.REPLY_FAILED',
      'the reply could not be sent; the log line with this request id has why',
    );
    message.respond(JSON.stringify({ ok: false, error: toWireError(error) } satisfies WireReply));
  }

  async #answer(subject: string, message: Msg, span: OpenSpan): Promise<WireReply> {
    try {
      const handler = this.messageHandlers.get(subject) as MessageHandler;
      const contract = contractOf(handler);
      const request = parseAs(
        contract.request,
        parseJson(message.data, 'REQUEST.INVALID'),
        'REQUEST.INVALID',
      );
      const outcome = await runWithContextFields(knownOf(request), () =>
        call(handler, request, new NatsContext([subject, message.headers])),
      );
      if (!outcome.ok) throw outcome.error;
      return { ok: true, result: checkedReply(contract, outcome.value) };
    } catch (error) {
      span.fail(errorTypeOf(error));
      countError('request', error);
      this.#log(subject, error);
      if (!message.reply) this.#setAside(subject, message, error);
      return { ok: false, error: toWireError(error) };
    }
  }

  // Nobody waits for the answer, so the dead letters are the only ones that can be told why.
  #setAside(subject: string, { data, headers }: Msg, error: unknown): void {
    if (!this.#link.isConnected()) return;
    const consumer = requestDeadLetters(this.#link.service);
    publishDeadLetter(this.#link, { consumer, id: '', subject, data, headers, error, deliveryCount: 1 });
  }

  #log(subject: string, error: unknown): void {
    if (isUnexpected(error)) this.#logger.error({ err: error, subject }, 'a request failed unexpectedly');
    else if (isAppError(error) && error.kind === 'transient')
      this.#logger.warn({ err: error, subject }, 'a request failed; trying again may help');
    else this.#logger.info({ code: (error as { code: string }).code, subject }, 'a request was refused');
  }
}

/** Where requests go that nobody waits for and that could not be carried out. */
export const requestDeadLetters = (service: string): string => `${service}-requests`;

/** A reply that breaks its contract is a bug here, not the caller's. */
const checkedReply = (contract: AnyContract, value: unknown): unknown => {
  const parsed = contract.reply.safeParse(value);
  if (parsed.success) return parsed.data;
  throw bug('INTERNAL.BAD_REPLY', 'the service made a reply that breaks its contract', {
    cause: parsed.error,
  });
};
