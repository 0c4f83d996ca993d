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
export { BREAKER_FAILURES, BREAKER_OPEN_MS, BREAKER_TRIAL_MS, circuitPhase } from './circuit.js';
export type { CircuitPhase, CircuitState } from './circuit.js';
export { clipAt, clipText } from './clip-text.js';
export { clipMiddle, leftOutNote } from './clip-middle.js';
export { assertNever, fold } from './decider.js';
export type { Decider } from './decider.js';
export {
  DISK_FAILPOINTS,
  FAILPOINTS,
  FILE_FAILPOINTS,
  REMOTE_FAILPOINTS,
  RESTORE_FAILPOINTS,
  WORK_FAILPOINTS,
  TURN_FAILPOINTS,
  armFailpoints,
  failpoint,
} from './failpoint.js';
export type { FailpointAction, FailpointName, TurnFailpoint } from './failpoint.js';
export { affordableOutputTokens, boundMicroUsd, cacheTokensOf, costMicroUsd } from './money.js';
export type { CacheTokens, TokenPrice, TokenUsage } from './money.js';
export { isoTime } from './ports.js';
export type { Clock, Ids } from './ports.js';
export {
  FORBIDDEN_KEYS,
  findJsonExcess,
  MAX_JSON_DEPTH,
  MAX_JSON_VALUES,
  nestsDeeperThan,
  toStorable,
  toStorableJson,
} from './json.js';
export type { JsonBounds, JsonObject, JsonPrimitive, JsonValue } from './json.js';
export { HeldBytes } from './held-bytes.js';
export { clipToJsonBytes, cutToJsonBytes, exceedsJsonBytes, jsonBytes } from './json-size.js';
export { createBatcher, createCoalescer, createReadBatcher } from './async/batcher.js';
export { backoffDelay, retry } from './async/retry.js';
export type { Backoff, RetryOptions } from './async/retry.js';
export { createKeyedQueue, createSerialQueue } from './async/serial-queue.js';
export { PROCESS_LANE, createTrialLane } from './async/trial-lane.js';
export type { TrialLane } from './async/trial-lane.js';
export type { KeyedQueue, SerialQueue } from './async/serial-queue.js';
export { nextEventLoopRound, repeatEvery, sleep } from './async/sleep.js';
export { abortable, abortableWithGrace, withTimeout } from './async/timeout.js';
export { createWakeSignal } from './async/wake-signal.js';
export type { WakeSignal } from './async/wake-signal.js';
