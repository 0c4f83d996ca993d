import { RPC, type RpcRequest } from '@antiphon/contracts/gateway';
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
import type { ClientConnection } from './client-connection.js';
import { isFault, parseFrame, type RpcFault } from './parse-frame.js';
import { isOurFault } from './rpc-error.js';
import type { MethodTable, RpcMethod } from './rpc-method.js';

export interface RpcSessionOptions {
  readonly connection: ClientConnection;
  readonly methods: MethodTable;
  readonly workspace: string;
  readonly caller: string;
  readonly logger: Logger;
  readonly ids: Ids;
  /** Of the upgrade: the trace of every request that brings none of its own. */
  readonly traceparent: string | undefined;
}

/** Requests of one connection that may be open at once; streams count until they are accepted. */
const MAX_OPEN_REQUESTS = 256;

/** The client's frame: from its arrival to its answer, or to the acceptance of the turn that it asks for. */
const spanOf = ({ name }: RpcMethod): SpanStart => ({
  name,
  role: 'server',
  attributes: { 'rpc.system.name': 'jsonrpc', 'rpc.method': name },
});

/** Answers the requests of one authenticated connection, side by side, each under its own request id. */
export const createRpcSession = (
  options: RpcSessionOptions,
): { receive(text: string, bytes: number): void } => {
  const { connection, methods, workspace, caller, logger, ids, traceparent } = options;
  let open = 0;

  const refuse = (fault: RpcFault, requestId: string): void => {
    countFailure('frame', 'invalid', String(fault.code));
    logger.info({ requestId, connectionId: connection.connectionId, code: fault.code }, fault.message);
    const error: JsonValue = { code: fault.code, message: fault.message, data: { requestId } };
    connection.send({ id: fault.id ?? null, error });
  };

  const fail = (request: RpcRequest, error: unknown, requestId: string): void => {
    const fields = { requestId, method: request.method.slice(0, 100), connectionId: connection.connectionId };
    const reason = error instanceof Error ? error.message : 'unknown error';
    countError('frame', error);
    if (isOurFault(error)) logger.error({ ...fields, err: error }, reason);
    else logger.info(fields, reason);
    connection.fail(request.id, error, requestId);
  };

  const perform = async (method: RpcMethod, request: RpcRequest, requestId: string): Promise<void> => {
    if (open >= MAX_OPEN_REQUESTS) throw exhausted('GATEWAY.TOO_MANY_REQUESTS', 'too many open requests');
    open++;
    try {
      const { id, params = {} } = request;
      const result = await method.handle({ connection, id, params, workspace, caller, requestId });
      if (result !== undefined) connection.answer(request.id, result);
    } finally {
      open--;
    }
  };
  const begin = (request: RpcRequest, requestId: string): Promise<void> | void => {
    const method = methods.get(request.method);
    if (method)
      return withSpan(spanOf(method), () => perform(method, request, requestId)).catch((error: unknown) =>
        fail(request, error, requestId),
      );
    const known = [...methods.keys()].join(', ');
    const message = `method not found: this version answers ${known}`;
    refuse({ code: RPC.methodNotFound, message, id: request.id }, requestId);
  };
  const start = (request: RpcRequest | RpcFault): void => {
    const requestId = ids.next();
    const own = isFault(request) ? undefined : request.traceparent;
    const context = contextFrom('gateway', {
      correlationId: requestId,
      traceparent: typeof own === 'string' ? own : traceparent,
    });
    runWithContext({ ...context, workspace }, () => {
      if (isFault(request)) refuse(request, requestId);
      else void begin(request, requestId);
    });
  };

  return {
    receive: (text, bytes) => {
      const parsed = parseFrame(text, bytes);
      if (parsed.kind === 'fault') refuse(parsed.fault, ids.next());
      else parsed.requests.forEach(start);
    },
  };
};
