import type { Principal } from '@antiphon/contracts/identity';
import type { SocketMethod } from '@antiphon/contracts/reference';
import { METHOD_OF_HANDLER } from '../access/access-guard.js';
import { parseCall, type MethodTable, type RawCall, type RpcResult } from '../sockets/rpc-method.js';

type Handler = (call: unknown) => RpcResult | Promise<RpcResult>;

/** Returns the handlers of gateways by method, as Nest binds them but without guards. */
export const handlersOf = (...gateways: readonly object[]): MethodTable =>
  new Map(
    gateways.flatMap((gateway) =>
      Object.getOwnPropertyNames(Object.getPrototypeOf(gateway)).flatMap((key) => {
        const handler = (gateway as Record<string, Handler>)[key] as Handler;
        const method = Reflect.getMetadata(METHOD_OF_HANDLER, handler) as SocketMethod | undefined;
        if (!method) return [];
        const handle = async (call: RawCall) => handler.call(gateway, parseCall(method, call));
        return [[method.name, handle] as const];
      }),
    ),
  );

/** Calls a method of a gateway as a principal. */
export const callMethod = async (
  gateway: object,
  name: string,
  params: Record<string, unknown>,
  principal: Principal,
): Promise<RpcResult> => {
  const handle = handlersOf(gateway).get(name);
  if (!handle) throw new Error(`no method ${name}`);
  const { workspace, caller } = principal;
  return handle({ params, principal, workspace, caller } as RawCall);
};
