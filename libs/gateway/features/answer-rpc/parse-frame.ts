import { FORBIDDEN_KEYS, nestsDeeperThan, toStorableJson, type JsonValue } from '@antiphon/kernel';
import { LIMITS, RPC, RpcRequest } from '@antiphon/contracts/gateway';

/** Calls in one JSON-RPC batch at most; each counts against the rate limit. */
export const MAX_BATCH = 32;

export interface RpcFault {
  readonly code: number;
  readonly message: string;
  readonly id: RpcRequest['id'];
}
export type ParsedFrame =
  | {
      readonly kind: 'requests';
      readonly requests: readonly (RpcRequest | RpcFault)[];
      readonly batch: boolean;
    }
  | { readonly kind: 'fault'; readonly fault: RpcFault };

const fault = (code: number, message: string, id: RpcRequest['id'] = null): ParsedFrame => ({
  kind: 'fault',
  fault: { code, message, id },
});

export const isFault = (request: RpcRequest | RpcFault): request is RpcFault => 'code' in request;

/** True when any object has a key that could reach a prototype. Depth is bounded by then. */
const hasForbiddenKey = (value: JsonValue): boolean => {
  if (value === null || typeof value !== 'object') return false;
  if (Array.isArray(value)) return value.some((item: JsonValue) => hasForbiddenKey(item));
  return Object.entries(value).some(([key, item]) => FORBIDDEN_KEYS.has(key) || hasForbiddenKey(item));
};

const idOf = (value: JsonValue): RpcRequest['id'] => {
  const id =
    value !== null && typeof value === 'object' && !Array.isArray(value)
      ? (value as { id?: JsonValue }).id
      : null;
  return typeof id === 'string' || typeof id === 'number' ? id : null;
};

const toRequest = (value: JsonValue): RpcRequest | RpcFault => {
  const id = idOf(value);
  if (hasForbiddenKey(value))
    return { code: RPC.invalidParams, message: 'the key "__proto__" is not allowed', id };
  const parsed = RpcRequest.safeParse(value);
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
 * Turns a text frame into requests. Size and depth are checked before anything is parsed; of doubled keys the
 * last one counts, here and in every service behind, because only the parsed value travels on.
 */
export const parseFrame = (text: string, bytes: number): ParsedFrame => {
  if (bytes > LIMITS.frameBytes)
    return fault(RPC.invalidRequest, `the frame is over ${LIMITS.frameBytes} bytes`);
  if (nestsDeeperThan(text)) return fault(RPC.invalidRequest, 'the frame nests deeper than 64 levels');
  let value: JsonValue;
  try {
    value = toStorableJson(JSON.parse(text) as JsonValue);
  } catch {
    return fault(RPC.parseError, 'the frame is not JSON');
  }
  if (!Array.isArray(value)) return { kind: 'requests', requests: [toRequest(value)], batch: false };
  if (value.length === 0 || value.length > MAX_BATCH)
    return fault(RPC.invalidRequest, `a batch has 1 to ${MAX_BATCH} requests`);
  return { kind: 'requests', requests: value.map(toRequest), batch: true };
};
