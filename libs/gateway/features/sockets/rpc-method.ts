import type { RpcRequest } from '@antiphon/contracts/gateway';
import type { Principal } from '@antiphon/contracts/identity';
import type { SocketMethod, SocketMethodName, SocketMethodTable } from '@antiphon/contracts/reference';
import { invalid, type JsonValue } from '@antiphon/kernel';
import type { z } from 'zod';
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

/** A request whose params are not validated yet. */
export type RawCall = RpcCall<Readonly<Record<string, unknown>>>;

/** Result of a method; undefined if it streams frames under the request's id instead. */
export type RpcResult = JsonValue | undefined;

/**
 * Handlers of the methods by name. It is a Map, so that a method called `__proto__` is simply not
 * found.
 */
export type MethodTable = ReadonlyMap<string, (call: RawCall) => Promise<RpcResult>>;

/** A request of a method of the reference. */
export type MethodCall<N extends SocketMethodName> = RpcCall<z.output<SocketMethodTable[N]['params']>>;

type Issue = z.ZodError['issues'][number];

/** Returns true for a field that is not there, also one of several forms. */
const isMissing = (issue: Issue): boolean =>
  issue.code === 'invalid_union'
    ? issue.errors.length > 0 && issue.errors.every(([first]) => first !== undefined && isMissing(first))
    : issue.code === 'invalid_type' && issue.message.endsWith('received undefined');

const describeIssue = (issue: Issue): string => {
  if (issue.code === 'unrecognized_keys') return `unknown field ${issue.keys.join(', ')}`;
  const field = issue.path.map(String).join('.');
  if (isMissing(issue)) return `${field} is required`;
  return field === '' ? issue.message : `${field}: ${issue.message}`;
};

/**
 * Validates the params of a request by the contract of its method. Throws
 * `GATEWAY.INVALID_PARAMS` with the names of the invalid fields.
 */
export const parseCall = (
  { name, params }: Pick<SocketMethod, 'name' | 'params'>,
  call: RawCall,
): RpcCall<unknown> => {
  const parsed = params.safeParse(call.params);
  if (parsed.success) return { ...call, params: parsed.data };
  const problems = parsed.error.issues.map(describeIssue);
  throw invalid('GATEWAY.INVALID_PARAMS', `invalid params for ${name}: ${problems.join('; ')}`, {
    data: { fields: parsed.error.issues.map((issue) => issue.path.map(String).join('.')) },
  });
};
