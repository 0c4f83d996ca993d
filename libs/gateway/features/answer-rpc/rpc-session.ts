import { RPC, type RpcRequest } from '@antiphon/contracts/gateway';
import { exhausted, type Ids, type JsonValue } from '@antiphon/kernel';
import { contextFrom, runWithContext, type Logger } from '@antiphon/observability';
import type { ClientConnection } from './client-connection.js';
import { isFault, parseFrame, type RpcFault } from './parse-frame.js';
import { isOurFault } from './rpc-error.js';
import type { MethodTable } from './rpc-method.js';

export interface RpcSessionOptions {
  readonly connection: ClientConnection;
  readonly methods: MethodTable;
  readonly workspace: string;
  readonly caller: string;
  readonly logger: Logger;
  readonly ids: Ids;
}

/** Requests of one connection that may be open at once; streams count until they are accepted. */
const MAX_OPEN_REQUESTS = 256;

/** Answers the requests of one authenticated connection, side by side, each under its own request id. */
export const createRpcSession = (
  options: RpcSessionOptions,
): { receive(text: string, bytes: number): void } => {
  const { connection, methods, workspace, caller, logger, ids } = options;
  let open = 0;

  const refuse = (fault: RpcFault, requestId: string): void => {
    logger.info({ requestId, connectionId: connection.connectionId, code: fault.code }, fault.message);
    const error: JsonValue = { code: fault.code, message: fault.message, data: { requestId } };
    connection.send({ id: fault.id ?? null, error });
  };

  const fail = (request: RpcRequest, error: unknown, requestId: string): void => {
    const fields = { requestId, method: request.method.slice(0, 100), connectionId: connection.connectionId };
    const reason = error instanceof Error ? error.message : 'unknown error';
    if (isOurFault(error)) logger.error({ ...fields, err: error }, reason);
    else logger.info(fields, reason);
    connection.fail(request.id, error, requestId);
  };

  const perform = async (request: RpcRequest, requestId: string): Promise<void> => {
    const method = methods.get(request.method);
    if (!method) {
      const known = [...methods.keys()].join(', ');
      const message = `method not found: this version answers ${known}`;
      return refuse({ code: RPC.methodNotFound, message, id: request.id }, requestId);
    }
    if (open >= MAX_OPEN_REQUESTS)
      return fail(request, exhausted('GATEWAY.TOO_MANY_REQUESTS', 'too many open requests'), requestId);
    open++;
    try {
      const { id, params = {} } = request;
      const result = await method.handle({ connection, id, params, workspace, caller, requestId });
      if (result !== undefined) connection.answer(request.id, result);
    } catch (error) {
      fail(request, error, requestId);
    } finally {
      open--;
    }
  };

  const start = (request: RpcRequest | RpcFault): void => {
    const requestId = ids.next();
    const context = contextFrom('gateway', { correlationId: requestId });
    runWithContext({ ...context, workspace }, () => {
      if (isFault(request)) refuse(request, requestId);
      else void perform(request, requestId);
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
