import type { RpcRequest } from '@antiphon/contracts/gateway';
import { invalid, type JsonValue } from '@antiphon/kernel';
import type { ZodError, ZodType } from 'zod';
import type { ClientConnection } from './client-connection.js';

/** One request of a client, its params validated. */
export interface RpcCall<Params> {
  readonly connection: ClientConnection;
  readonly id: RpcRequest['id'];
  readonly params: Params;
  readonly workspace: string;
  /** The scope of an idempotency key. */
  readonly caller: string;
  /** In the log line and in every error of this request. */
  readonly requestId: string;
}

/** A method answers a result, or nothing when it streams frames under the request's id. */
export type RpcResult = JsonValue | undefined;

export interface RpcMethod {
  readonly name: string;
  readonly handle: (call: RpcCall<Readonly<Record<string, unknown>>>) => Promise<RpcResult>;
}

type Issue = ZodError['issues'][number];

const describeIssue = (issue: Issue): string => {
  if (issue.code === 'unrecognized_keys') return `unknown field ${issue.keys.join(', ')}`;
  const field = issue.path.map(String).join('.');
  if (issue.code === 'invalid_type' && issue.message.endsWith('received undefined'))
    return `${field} is required`;
  return field === '' ? issue.message : `${field}: ${issue.message}`;
};

/** A method whose params are checked against a strict contract; a wrong one names the field. */
export const defineMethod = <Params>(
  name: string,
  schema: ZodType<Params>,
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

/** A map and not an object: a method called `__proto__` is simply not in it. */
export const methodTable = (methods: readonly RpcMethod[]): MethodTable =>
  new Map(methods.map((method) => [method.name, method]));
