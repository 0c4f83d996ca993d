import type { JsonValue } from '@antiphon/kernel';
import { z } from 'zod';
import { defineMethod, type RpcMethod } from './rpc-method.js';

const NoParams = z.strictObject({});

/** `ping`. */
export const ping: RpcMethod = defineMethod('ping', NoParams, () => Promise.resolve('pong'));

/** `status`. */
export const status = (gather: () => Promise<Record<string, JsonValue>>): RpcMethod =>
  defineMethod('status', NoParams, () => gather());

/** `connect` on a connection that may speak already: a client need not know whether a token is configured. */
export const connectAgain: RpcMethod = defineMethod('connect', z.object({}), ({ connection }) =>
  Promise.resolve({ connectionId: connection.connectionId }),
);
