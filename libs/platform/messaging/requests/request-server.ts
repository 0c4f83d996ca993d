import { MessagePattern, NatsContext, ServerNats, Transport } from '@nestjs/microservices';
import type { MessageHandler } from '@nestjs/microservices';
import type { Msg, MsgHdrs, NatsConnection, Subscription } from '@nats-io/transport-node';
import { firstValueFrom, isObservable } from 'rxjs';
import { z } from 'zod';
import { bug, isAppError } from '@antiphon/kernel';
import { processSubject, type RequestContract } from '@antiphon/contracts/messaging';
import {
  addFoundIds,
  countError,
  currentContext,
  errorTypeOf,
  runWithContext,
  runWithContextFields,
  withSpan,
} from '@antiphon/observability';
import type { Logger, OpenSpan, SpanStart } from '@antiphon/observability';
import { publishDeadLetter, requestDeadLetters } from '../consumers/dead-letters.js';
import type { NatsLink } from '../link/nats-link.js';
import type { LocalRequests } from './local-requests.js';
import { serviceOf, startSubject } from './service-starts.js';
import {
  contextFieldsOf,
  contextFromHeaders,
  isUnexpected,
  parseAs,
  parseJson,
  toWireError,
} from './wire.js';
import type { WireReply } from './wire.js';

/**
 * Result of a handler. Nest's own error filters would replace a thrown error by a text of theirs.
 */
type Outcome =
  { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly error: unknown };

/** A contract without its types, as Nest stores it with its handler. */
type AnyContract = RequestContract<z.ZodType, z.ZodType>;

type HandlerResult<Reply extends z.ZodType> = z.input<Reply> | Promise<z.input<Reply>>;

/** During an upgrade a newer service sends fields that an older one does not know. */
const ignoreUnknownFields = (schema: z.ZodType): z.ZodType =>
  schema instanceof z.ZodObject ? schema.strip() : schema;

/**
 * Makes a method of a Nest controller the handler of `contract.subject`. It is called with the
 * parsed request, inside the caller's RequestContext, and returns the reply. The caller receives a
 * thrown AppError with the same kind and code. The method itself stays as it is, for direct calls.
 */
export const HandleRequest =
  <Request extends z.ZodType, Reply extends z.ZodType>(contract: RequestContract<Request, Reply>) =>
  <Method extends (request: z.output<Request>) => HandlerResult<Reply>>(
    target: object,
    key: string | symbol,
    { value: method }: TypedPropertyDescriptor<Method>,
  ): void => {
    const settle = async function (this: unknown, request: z.output<Request>): Promise<Outcome> {
      try {
        return { ok: true, value: await (method as Method).call(this, request) };
      } catch (error) {
        return { ok: false, error };
      }
    };
    // Nest finds handlers among the prototype's methods.
    const name = `${String(key)}Outcome`;
    const descriptor = { value: settle, writable: true, configurable: true };
    Object.defineProperty(target, name, descriptor);
    const known = { ...contract, request: ignoreUnknownFields(contract.request) };
    MessagePattern(contract.subject, Transport.NATS, { contract: known })(target, name, descriptor);
  };

/** A request by NATS, or by another service of this process. */
type Received = Pick<Msg, 'data' | 'headers' | 'reply'> & { respond(reply: string): unknown };

export interface RequestServerOptions {
  readonly link: NatsLink;
  readonly logger: Logger;
  /** Id of this process, for requests that name it. */
  readonly processId?: string;
  /** Time limit of `close` for requests in progress. Default: 10,000 ms. */
  readonly drainTimeoutMs?: number;
  /** Requests of the process that hosts this service. */
  readonly local?: LocalRequests | undefined;
  /**
   * Resolves once the projections of this process have reached a position, and rejects after a
   * bounded time. A request that demands a position waits for it.
   */
  readonly reach?: (position: number) => Promise<unknown>;
}

const contractOf = (handler: MessageHandler): AnyContract => {
  const { contract } = handler.extras as { contract?: AnyContract };
  if (!contract) throw new Error('a NATS handler must be declared by @HandleRequest');
  return contract;
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

const callHandler = async (
  handler: MessageHandler,
  request: unknown,
  context: NatsContext,
): Promise<Outcome> => {
  const result: unknown = await handler(request, context);
  return (isObservable(result) ? await firstValueFrom(result) : result) as Outcome;
};

/** Parses a reply by its contract; a mismatch is a bug of this service, not of the caller. */
const parseReply = (contract: AnyContract, value: unknown): unknown => {
  const parsed = contract.reply.safeParse(value);
  if (parsed.success) return parsed.data;
  throw bug('INTERNAL.BAD_REPLY', 'the service made a reply that breaks its contract', {
    cause: parsed.error,
  });
};

/**
 * Serves requests by Nest's NATS transport over the process's one connection (docs/adr/0020).
 * Nest's handlers, guards and interceptors stay; plain JSON with headers replaces Nest's envelope.
 */
export class RequestServer extends ServerNats {
  readonly #link: NatsLink;
  readonly #logger: Logger;
  readonly #processId: string | undefined;
  readonly #drainTimeoutMs: number;
  readonly #local: LocalRequests | undefined;
  readonly #reach: RequestServerOptions['reach'];
  readonly #subscriptions: Subscription[] = [];
  readonly #inProgress = new Set<Promise<void>>();

  constructor({ link, logger, processId, drainTimeoutMs = 10_000, local, reach }: RequestServerOptions) {
    super({ queue: link.service });
    this.#link = link;
    this.#logger = logger;
    this.#processId = processId;
    this.#drainTimeoutMs = drainTimeoutMs;
    this.#local = local;
    this.#reach = reach;
  }

  override createNatsClient(): Promise<NatsConnection> {
    return Promise.resolve(this.#link.connection);
  }

  override bindEvents(connection: NatsConnection): void {
    for (const [subject, handler] of this.messageHandlers) {
      const callback = (error: Error | null, message: Msg): void => this.#receive(subject, error, message);
      this.#subscriptions.push(connection.subscribe(subject, { queue: this.#link.service, callback }));
      if (this.#processId !== undefined && contractOf(handler).toProcess === true)
        this.#subscriptions.push(
          connection.subscribe(processSubject(subject, this.#processId), { callback }),
        );
      this.#local?.add(subject, (data, headers) => this.#receiveLocal(subject, data, headers));
    }
    // Callers whose request went to a process that died send it again.
    const services = new Set([...this.messageHandlers.keys()].map(serviceOf));
    for (const service of services) connection.publish(startSubject(service));
  }

  // The link reports the connection's state once for the whole process.
  override async handleStatusUpdates(): Promise<void> {}

  /**
   * Drains: accepts no new request and waits for those in progress until the timeout. Leaves the
   * connection open.
   */
  override async close(): Promise<void> {
    for (const subject of this.messageHandlers.keys()) this.#local?.remove(subject);
    const subscriptions = this.#subscriptions.splice(0);
    if (this.#link.isConnected())
      await Promise.all(subscriptions.map((subscription) => subscription.drain()));
    const deadline = AbortSignal.timeout(this.#drainTimeoutMs);
    const expired = new Promise<void>((resolve) => deadline.addEventListener('abort', () => resolve()));
    await Promise.race([Promise.all(this.#inProgress), expired]);
    if (this.#inProgress.size > 0)
      this.#logger.warn({ requests: this.#inProgress.size }, 'requests unfinished at shutdown');
  }

  #receiveLocal(subject: string, data: string, headers: MsgHdrs): Promise<string> {
    const limit = this.#link.connection.info?.max_payload ?? Infinity;
    return new Promise((resolve) => {
      const respond = (reply: string): void => {
        if (Buffer.byteLength(reply) > limit) throw new Error('the reply is larger than a message may be');
        resolve(reply);
      };
      this.#receive(subject, null, { data: Buffer.from(data), headers, reply: 'local', respond });
    });
  }

  #receive(subject: string, error: Error | null, message: Received): void {
    if (error) return this.#logger.error({ err: error, subject }, 'request subscription failed');
    const work = runWithContext(contextFromHeaders(this.#link.service, message.headers), () =>
      this.handleMessage(subject, message),
    );
    this.#inProgress.add(work);
    void work.finally(() => this.#inProgress.delete(work));
  }

  override handleMessage(subject: string, message: Received): Promise<void> {
    return withSpan(spanOf(subject), (span) => this.#respond(subject, message, span));
  }

  async #respond(subject: string, message: Received, span: OpenSpan): Promise<void> {
    const reply = await this.#handle(subject, message, span);
    if (!message.reply) return;
    try {
      message.respond(JSON.stringify(reply));
    } catch (error) {
      this.#logger.error({ err: error, subject }, 'reply not sent');
      this.#respondFailure(message);
    }
  }

  // The reply is too large or not JSON. An error reply spares the caller its timeout.
  #respondFailure(message: Received): void {
    if (this.#link.connection.isClosed()) return;
    const error = bug(
      'MESSAGING.REPLY_FAILED',
      'the reply could not be sent; the log line with this request id has why',
    );
    message.respond(JSON.stringify({ ok: false, error: toWireError(error) } satisfies WireReply));
  }

  async #handle(subject: string, message: Received, span: OpenSpan): Promise<WireReply> {
    try {
      const handler = this.messageHandlers.get(subject) as MessageHandler;
      const contract = contractOf(handler);
      const body = parseJson(message.data, 'REQUEST.INVALID');
      const request = parseAs(contract.request, body, 'REQUEST.INVALID');
      const ids = contextFieldsOf(request);
      addFoundIds(ids);
      const after = currentContext()?.after;
      if (after !== undefined) await this.#reach?.(after);
      const outcome = await runWithContextFields(ids, () =>
        callHandler(handler, request, new NatsContext([subject, message.headers])),
      );
      if (!outcome.ok) throw outcome.error;
      addFoundIds(contextFieldsOf(outcome.value));
      return { ok: true, result: parseReply(contract, outcome.value) };
    } catch (error) {
      span.fail(errorTypeOf(error));
      countError('request', error);
      this.#log(subject, error);
      if (!message.reply) this.#publishDeadLetter(subject, message, error);
      return { ok: false, error: toWireError(error) };
    }
  }

  // A request without a reply subject has no caller to report to: its error goes to the dead
  // letters.
  #publishDeadLetter(subject: string, { data, headers }: Received, error: unknown): void {
    if (!this.#link.isConnected()) return;
    const consumer = requestDeadLetters(this.#link.service);
    publishDeadLetter(this.#link, { consumer, id: '', subject, data, headers, error, deliveryCount: 1 });
  }

  #log(subject: string, error: unknown): void {
    if (isUnexpected(error)) this.#logger.error({ err: error, subject }, 'request failed unexpectedly');
    else if (isAppError(error) && error.kind === 'transient')
      this.#logger.warn({ err: error, subject }, 'request failed, retry possible');
    else this.#logger.info({ code: (error as { code: string }).code, subject }, 'request refused');
  }
}
