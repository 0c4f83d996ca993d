import { LIMITS, RPC, RpcRequest } from '@antiphon/contracts/gateway';
import { findMethod } from '@antiphon/contracts/reference';
import {
  FORBIDDEN_KEYS,
  isAppError,
  findJsonExcess,
  toAppError,
  toStorableJson,
  type AppError,
  type ErrorKind,
  type JsonObject,
  type JsonValue,
} from '@antiphon/kernel';
import { z } from 'zod';

/**
 * Maximum number of calls in one JSON-RPC batch. Each counts against the limit of open requests.
 */
export const MAX_BATCH = 32;

export interface RpcFault {
  readonly code: number;
  readonly message: string;
  readonly id: RpcRequest['id'];
  /** True for the answer to a typed frame, which has the type `error`. */
  readonly isTyped?: boolean;
}
export type ParsedFrame =
  | {
      readonly kind: 'requests';
      readonly requests: readonly (RpcRequest | RpcFault)[];
      readonly batch: boolean;
      /** True if the frame, or one of its batch, is a typed frame of a known type. */
      readonly isTyped: boolean;
    }
  | { readonly kind: 'fault'; readonly fault: RpcFault };

/** Types that have another name than their method. */
const METHOD_OF_TYPE: Readonly<Record<string, string>> = { agent_spawn_request: 'agent.spawn' };
/** Fields of a typed frame that are not params. */
const OWN_FIELDS: ReadonlySet<string> = new Set(['type', 'id', 'jsonrpc', 'traceparent']);

const findByType = (type: string): ReturnType<typeof findMethod> =>
  findMethod((Object.hasOwn(METHOD_OF_TYPE, type) ? METHOD_OF_TYPE[type] : type) ?? '');

/** Methods by which a client chooses its frames itself. */
const OWN_CHOICE: ReadonlySet<string> = new Set(['connect', 'agent.subscribe', 'agent.unsubscribe']);

/** Returns true for a typed frame of a known type, whose sender understands typed frames. */
const isTypedFrame = (value: JsonValue): boolean => {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return false;
  const { type, method } = value as JsonObject;
  if (typeof type !== 'string' || method !== undefined || OWN_CHOICE.has(type)) return false;
  return findByType(type) !== undefined;
};

/** Returns the names of the fields of a schema, null for one that accepts any. */
const fieldsOf = (schema: z.ZodType): ReadonlySet<string> | null => {
  if (schema instanceof z.ZodObject) return new Set(Object.keys(schema.shape));
  if (!(schema instanceof z.ZodUnion)) return null;
  const options = (schema.options as z.ZodType[]).map(fieldsOf);
  return options.includes(null) ? null : new Set(options.flatMap((fields) => [...(fields ?? [])]));
};

/**
 * Turns a typed frame `{"type":"chat.send",…}` into the request of the method of that name. Unknown
 * fields are ignored. Returns undefined for an unknown type, and any other frame as it is.
 */
const fromTyped = (value: JsonValue): JsonValue | undefined => {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return value;
  const { type, id, traceparent, method } = value as JsonObject;
  if (typeof type !== 'string' || method !== undefined) return value;
  const found = findByType(type);
  if (!found) return undefined;
  const fields = fieldsOf(found.params);
  const params = Object.fromEntries(
    Object.entries(value).filter(([key]) => !OWN_FIELDS.has(key) && (fields?.has(key) ?? true)),
  );
  return {
    ...(id === undefined ? {} : { id }),
    ...(traceparent === undefined ? {} : { traceparent }),
    method: found.name,
    params,
  };
};

const fault = (code: number, message: string, id: RpcRequest['id'] = null): ParsedFrame => ({
  kind: 'fault',
  fault: { code, message, id },
});

export const isFault = (request: RpcRequest | RpcFault): request is RpcFault => 'code' in request;

/**
 * Returns true if any object has a key that could reach a prototype. The depth is limited before.
 */
const hasForbiddenKey = (value: JsonValue): boolean => {
  if (value === null || typeof value !== 'object') return false;
  if (Array.isArray(value)) return value.some((item: JsonValue) => hasForbiddenKey(item));
  const object = value as JsonObject;
  return Object.keys(object).some(
    (key) => FORBIDDEN_KEYS.has(key) || hasForbiddenKey(object[key] as JsonValue),
  );
};

/** Returns the id of a request if a response can carry it, else null. */
const idOf = (value: JsonValue): RpcRequest['id'] => {
  const id =
    value !== null && typeof value === 'object' && !Array.isArray(value)
      ? (value as { id?: JsonValue }).id
      : null;
  return RpcRequest.shape.id.safeParse(id).data ?? null;
};

/** Returns true if a text may have a forbidden key: one in plain letters, or one with an escape. */
const mayHaveForbiddenKey = (text: string): boolean => text.includes('__proto__') || text.includes('\\u');

const UNSTORABLE =
  'a text has a NUL character (U+0000) or half of a UTF-16 pair, which cannot be stored: remove it';

const toRequest = (value: JsonValue, isSuspect: boolean): RpcRequest | RpcFault => {
  const storable = toStorableJson(value);
  const id = idOf(storable);
  // A text is kept as it is, or refused.
  if (storable !== value) return { code: RPC.invalidParams, message: UNSTORABLE, id };
  if (isSuspect && hasForbiddenKey(value))
    return { code: RPC.invalidParams, message: 'the key "__proto__" is not allowed', id };
  const request = fromTyped(value);
  if (request === undefined) {
    const message = 'no method of this type: the reference lists the methods';
    return { code: RPC.methodNotFound, message, id, isTyped: true };
  }
  const parsed = RpcRequest.safeParse(request);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const where = issue?.path.join('.') || 'the request';
  return {
    code: RPC.invalidRequest,
    message: `invalid request: ${where}: ${issue?.message ?? 'malformed'}`,
    id,
  };
};

/**
 * Parses a text frame into requests. Size, depth and number of values are checked before. Of a
 * repeated key the last one counts, here and in every other service, because only the parsed value
 * is passed on.
 */
export const parseFrame = (text: string, bytes: number): ParsedFrame => {
  if (bytes > LIMITS.frameBytes)
    return fault(RPC.invalidRequest, `the frame is over ${LIMITS.frameBytes} bytes`);
  const excess = findJsonExcess(text);
  if (excess !== null) return fault(RPC.invalidRequest, `the frame ${excess}`);
  let value: JsonValue;
  try {
    value = JSON.parse(text) as JsonValue;
  } catch {
    return fault(RPC.parseError, 'the frame is not JSON');
  }
  if (Array.isArray(value) && (value.length === 0 || value.length > MAX_BATCH))
    return fault(RPC.invalidRequest, `a batch has 1 to ${MAX_BATCH} requests`);
  const isSuspect = mayHaveForbiddenKey(text);
  const batch = Array.isArray(value);
  const values = Array.isArray(value) ? (value as readonly JsonValue[]) : [value];
  const requests = values.map((one) => toRequest(one, isSuspect));
  return { kind: 'requests', requests, batch, isTyped: values.some(isTypedFrame) };
};

/** JSON-RPC code of each kind of error (docs/errors.md). */
const CODES: Readonly<Record<ErrorKind, number>> = {
  invalid: RPC.invalidParams,
  unauthenticated: RPC.unauthenticated,
  forbidden: RPC.forbidden,
  not_found: RPC.notFound,
  rejected: RPC.invalidParams,
  conflict: RPC.conflict,
  transient: RPC.engineDown,
  exhausted: RPC.exhausted,
  provider: RPC.providerFailed,
  bug: RPC.internal,
};

/** Delay after which a client may retry a request that failed because an engine is down, ms. */
const RETRY_AFTER_MS = 2_000;

/** Keys of an error's data that clients may see. Other keys are for log lines only. */
const CLIENT_DATA_KEYS: ReadonlySet<string> = new Set([
  'after',
  'agentId',
  'answeredAt',
  'answeredBy',
  'approvalId',
  'before',
  'chain',
  'digest',
  'epoch',
  'feature',
  'fields',
  'from',
  'given',
  'lastOffset',
  'limit',
  'needed',
  'permission',
  'retryAfterSeconds',
  'role',
  'status',
  'to',
]);

const clientData = ({ data }: AppError): Record<string, unknown> =>
  Object.fromEntries(Object.entries(data).filter(([key]) => CLIENT_DATA_KEYS.has(key)));

export interface RpcErrorBody {
  readonly code: number;
  readonly message: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/**
 * Returns the error object of a response: code, message, the data that clients may see, and the
 * request id. It never holds a stack trace.
 */
export const rpcError = (error: unknown, requestId: string): RpcErrorBody => {
  const known: AppError = toAppError(error);
  return {
    code: CODES[known.kind],
    message: known.message,
    data: {
      ...clientData(known),
      code: known.code,
      requestId,
      ...(known.kind === 'transient' ? { retryAfterMs: RETRY_AFTER_MS } : {}),
    },
  };
};

/** Returns true for a bug or an engine failure, whose log line needs the whole error. */
export const isServerFault = (error: unknown): boolean =>
  !isAppError(error) || error.kind === 'bug' || error.kind === 'transient';
