import { Catch, createParamDecorator, SetMetadata, UseFilters } from '@nestjs/common';
import type { ExceptionFilter, ExecutionContext } from '@nestjs/common';
import { SubscribeMessage } from '@nestjs/websockets';
import type { SocketMethod } from '@antiphon/contracts/reference';
import type { z } from 'zod';
import { METHOD_OF_HANDLER } from '../access/access-guard.js';
import { parseCall, type RawCall, type RpcCall, type RpcResult } from './rpc-method.js';

/** Passes errors on to `RpcSession`, which answers them. */
@Catch()
class PassErrors implements ExceptionFilter {
  catch(error: unknown): never {
    throw error;
  }
}

const Call = createParamDecorator((method: SocketMethod, context: ExecutionContext) =>
  parseCall(method, context.switchToWs().getData<RawCall>()),
);

/**
 * Result of a method's handler, checked at compile time. A handler that streams, or responds by
 * itself, returns undefined.
 */
type MethodResult<M extends SocketMethod> = M['answer'] extends z.ZodType
  ? z.input<M['answer']> | undefined
  : RpcResult;

/**
 * Makes a method of a `@WebSocketGateway()` the handler of a socket method, as `@HandleRoute` does
 * for a route. It gets the request with validated params. The name, the rule of access and the
 * schema come from the contract alone.
 */
export const HandleMethod =
  <M extends SocketMethod>(method: M) =>
  <Handler extends (call: RpcCall<z.output<M['params']>>) => MethodResult<M> | Promise<MethodResult<M>>>(
    target: object,
    key: string,
    descriptor: TypedPropertyDescriptor<Handler>,
  ): void => {
    Call(method)(target, key, 0);
    SetMetadata(METHOD_OF_HANDLER, method)(target, key, descriptor);
    SubscribeMessage(method.name)(target, key, descriptor);
    UseFilters(PassErrors)(target, key, descriptor);
  };
