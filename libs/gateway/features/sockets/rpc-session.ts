import { RPC, type RpcRequest } from '@antiphon/contracts/gateway';
import type { Principal } from '@antiphon/contracts/identity';
import { exhausted, type Ids, type JsonValue } from '@antiphon/kernel';
import {
  contextFrom,
  countError,
  countFailure,
  runWithContext,
  withSpan,
  type Logger,
  type SpanStart,
} from '@antiphon/observability';
import type { RateLimits } from '../access/rate-limits.js';
import type { ClientConnection } from './client-connection.js';
import type { MethodTable, RpcCall } from './rpc-method.js';
import { isFault, isServerFault, parseFrame, type ParsedFrame, type RpcFault } from './rpc-protocol.js';

export interface RpcSessionOptions {
  readonly connection: ClientConnection;
  readonly methods: MethodTable;
  readonly principal: Principal;
  readonly limits: RateLimits;
  readonly logger: Logger;
  readonly ids: Ids;
  /**
   * Called for each typed frame. Requests of the frame wait for the promise. Absent: nothing is
   * called.
   */
  readonly onTyped?: () => Promise<void>;
  /** Trace context of the upgrade, for requests without their own. */
  readonly traceparent: string | undefined;
}

/**
 * Maximum number of open requests of one connection. A stream counts until its turn is accepted.
 */
const MAX_OPEN_REQUESTS = 256;

type Handler = NonNullable<ReturnType<MethodTable['get']>>;
type Arrival = Pick<RpcCall<unknown>, 'requestId' | 'receivedAt'>;
/** Arrival of a frame, and what its requests wait for. */
interface Received {
  readonly receivedAt: number;
  readonly ready: Promise<void> | undefined;
}

/** Span of a request, from its arrival to its response or to the acceptance of its turn. */
const spanOf = (name: string): SpanStart => ({
  name,
  role: 'server',
  attributes: { 'rpc.system.name': 'jsonrpc', 'rpc.method': name },
});

/**
 * Handles the requests of one authenticated connection concurrently, each under its own request id.
 */
export class RpcSession {
  readonly #options: RpcSessionOptions;
  #open = 0;

  constructor(options: RpcSessionOptions) {
    this.#options = options;
  }

  /** Handles one text frame of `bytes` bytes. */
  receive(text: string, bytes: number): void {
    const receivedAt = performance.now();
    const parsed = parseFrame(text, bytes);
    const { limits, principal } = this.#options;
    try {
      limits.chargeFrame(principal, bytes);
    } catch (error) {
      return this.#refuseAll(parsed, error);
    }
    if (parsed.kind === 'fault') this.#refuse(parsed.fault, this.#options.ids.next());
    else {
      const ready = parsed.isTyped ? this.#options.onTyped?.() : undefined;
      for (const request of parsed.requests) this.#start(request, { receivedAt, ready });
    }
  }

  /** Refuses the requests of a frame over a rate limit, without a log line for each. */
  #refuseAll(parsed: ParsedFrame, error: unknown): void {
    const { connection, ids } = this.#options;
    countError('frame', error);
    const refused = parsed.kind === 'requests' ? parsed.requests : [parsed.fault];
    for (const { id } of refused) connection.fail(id, error, ids.next());
  }

  #start(request: RpcRequest | RpcFault, { receivedAt, ready }: Received): void {
    const { ids, principal, traceparent } = this.#options;
    const requestId = ids.next();
    const own = isFault(request) ? undefined : request.traceparent;
    const context = contextFrom('gateway', {
      correlationId: requestId,
      traceparent: typeof own === 'string' ? own : traceparent,
    });
    runWithContext({ ...context, workspace: principal.workspace }, () => {
      if (isFault(request)) this.#refuse(request, requestId);
      else this.#dispatch(request, { requestId, receivedAt }, ready);
    });
  }

  #dispatch(request: RpcRequest, arrival: Arrival, ready: Promise<void> | undefined): void {
    const { requestId } = arrival;
    const { connection, methods } = this.#options;
    const handle = methods.get(request.method);
    if (handle) {
      if (!connection.beginRequest(request.id)) return this.#refuseOpenId(request, requestId);
      void withSpan(spanOf(request.method), async () => {
        if (ready) await ready;
        return this.#perform(handle, request, arrival);
      })
        .catch((error: unknown) => this.#fail(request, error, requestId))
        .finally(() => connection.endRequest(request.id));
      return;
    }
    const message = `method not found: this version answers ${[...methods.keys()].join(', ')}`;
    this.#refuse({ code: RPC.methodNotFound, message, id: request.id }, requestId);
  }

  async #perform(handle: Handler, { id, method, params = {} }: RpcRequest, arrival: Arrival): Promise<void> {
    const { connection, principal, limits } = this.#options;
    limits.chargeRequest(principal);
    if (this.#open >= MAX_OPEN_REQUESTS)
      throw exhausted('GATEWAY.TOO_MANY_REQUESTS', 'too many open requests');
    this.#open++;
    try {
      const { workspace, caller } = principal;
      const call = { connection, id, params, principal, workspace, caller, ...arrival };
      const result = await handle(call);
      if (result !== undefined) connection.respond(id, result);
      this.#logAnswer(method, result === undefined ? 'streams' : 'answered', arrival);
    } finally {
      this.#open--;
    }
  }

  #logAnswer(method: string, status: string, { requestId, receivedAt }: Arrival): void {
    const { connection, logger } = this.#options;
    const durationMs = Math.round(performance.now() - receivedAt);
    const { connectionId } = connection;
    logger.debug({ requestId, method, status, durationMs, connectionId }, 'request completed');
  }

  /** Refuses a request whose id is in use. The response names no id, because it has another's. */
  #refuseOpenId({ id }: RpcRequest, requestId: string): void {
    const message = `a request or stream of the id ${JSON.stringify(id)} is open on this connection`;
    this.#refuse({ code: RPC.invalidRequest, message, id: null }, requestId);
  }

  #refuse({ code, message, id, isTyped = false }: RpcFault, requestId: string): void {
    const { connection, logger } = this.#options;
    const { connectionId } = connection;
    countFailure('frame', 'invalid', String(code));
    logger.info({ requestId, connectionId, code, reason: message }, 'frame refused');
    const error: JsonValue = { code, message, data: { requestId } };
    connection.send({ ...(isTyped ? { type: 'error' } : {}), id: id ?? null, error });
  }

  #fail({ id, method }: RpcRequest, error: unknown, requestId: string): void {
    const { connection, logger } = this.#options;
    const fields = { requestId, method: method.slice(0, 100), connectionId: connection.connectionId };
    countError('frame', error);
    if (isServerFault(error)) logger.error({ ...fields, err: error }, 'request failed');
    else {
      const reason = error instanceof Error ? error.message : 'unknown error';
      logger.info({ ...fields, reason }, 'request refused');
    }
    connection.fail(id, error, requestId);
  }
}
