import { Capabilities, type RpcRequest } from '@antiphon/contracts/gateway';
import type { Principal } from '@antiphon/contracts/identity';
import type { SocketMethodName } from '@antiphon/contracts/reference';
import { invalid, type JsonValue } from '@antiphon/kernel';
import { z } from 'zod';
import type { ClientConnection } from './client-connection.js';

/** One request of a client, with its validated params. */
export interface RpcCall<Params> {
  readonly connection: ClientConnection;
  readonly id: RpcRequest['id'];
  readonly params: Params;
  readonly principal: Principal;
  /** Workspace of the principal. */
  readonly workspace: string;
  /** Caller of the principal, which scopes the idempotency key. */
  readonly caller: string;
  /** Id of the request in log lines and errors. */
  readonly requestId: string;
  /** Arrival of the request's frame on the monotonic clock, ms. */
  readonly receivedAt: number;
}

/** Result of a method; undefined if it streams frames under the request's id instead. */
export type RpcResult = JsonValue | undefined;

export interface RpcMethod {
  readonly name: string;
  readonly handle: (call: RpcCall<Readonly<Record<string, unknown>>>) => Promise<RpcResult>;
}

type Issue = z.ZodError['issues'][number];

const describeIssue = (issue: Issue): string => {
  if (issue.code === 'unrecognized_keys') return `unknown field ${issue.keys.join(', ')}`;
  const field = issue.path.map(String).join('.');
  if (issue.code === 'invalid_type' && issue.message.endsWith('received undefined'))
    return `${field} is required`;
  return field === '' ? issue.message : `${field}: ${issue.message}`;
};

/**
 * Defines a method of the reference, which has its access rule. Params are validated by a schema.
 * Invalid ones are refused with the names of the fields.
 */
export const defineMethod = <Params>(
  name: SocketMethodName,
  schema: z.ZodType<Params>,
  handle: (call: RpcCall<Params>) => Promise<RpcResult>,
): RpcMethod => ({
  name,
  handle: async (call) => {
    const parsed = schema.safeParse(call.params);
    if (parsed.success) return handle({ ...call, params: parsed.data });
    const problems = parsed.error.issues.map(describeIssue);
    throw invalid('GATEWAY.INVALID_PARAMS', `invalid params for ${name}: ${problems.join('; ')}`, {
      data: { fields: parsed.error.issues.map((issue) => issue.path.map(String).join('.')) },
    });
  },
});

export type MethodTable = ReadonlyMap<string, RpcMethod>;

/**
 * Creates the table of methods. It is a Map, so that a method called `__proto__` is simply not
 * found.
 */
export const createMethodTable = (methods: readonly RpcMethod[]): MethodTable =>
  new Map(methods.map((method) => [method.name, method]));

const NoParams = z.strictObject({});

/** Returns `ping`, `status`, and `connect` for a connection that is already authenticated. */
export const connectionMethods = (
  readStatus: (reader: Principal) => Promise<JsonValue>,
  onCapabilities: (
    connection: ClientConnection,
    principal: Principal,
    capabilities: readonly string[],
  ) => void = () => undefined,
): RpcMethod[] => [
  defineMethod('ping', NoParams, () => Promise.resolve('pong')),
  defineMethod('status', NoParams, ({ principal }) => readStatus(principal)),
  // A client need not know whether a token is configured, so that `connect` is valid at any time.
  defineMethod('connect', z.object({ capabilities: Capabilities }), ({ connection, principal, params }) => {
    onCapabilities(connection, principal, params.capabilities ?? []);
    return Promise.resolve({ connectionId: connection.connectionId });
  }),
];
