export {
  AppError,
  ERROR_KINDS,
  bug,
  conflict,
  exhausted,
  forbidden,
  invalid,
  isAppError,
  notFound,
  providerFailed,
  rejected,
  toAppError,
  transient,
  unauthenticated,
} from './app-error.js';
export type { ErrorData, ErrorKind } from './app-error.js';
export { createBoundedMap } from './bounded-map.js';
export type { BoundedMap } from './bounded-map.js';
export { assertNever, fold } from './decider.js';
export type { Decider } from './decider.js';
export { FAILPOINTS, TURN_FAILPOINTS, armFailpoints, failpoint } from './failpoint.js';
export type { FailpointAction, FailpointName, TurnFailpoint } from './failpoint.js';
export { affordableOutputTokens, costMicroUsd } from './money.js';
export type { TokenPrice } from './money.js';
export { isoTime } from './ports.js';
export type { Clock, Ids } from './ports.js';
export { FORBIDDEN_KEYS, MAX_JSON_DEPTH, nestsDeeperThan, toStorable, toStorableJson } from './json.js';
export type { JsonObject, JsonPrimitive, JsonValue } from './json.js';
