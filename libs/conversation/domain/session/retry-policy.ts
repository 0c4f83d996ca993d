import type { SessionEventOf } from '@antiphon/contracts/agent';
import type { ToolRetry } from '@antiphon/contracts/sandbox';
import { HAND_OVER } from './hand-over.js';
import type { TurnToolCall } from './session-state.js';

/**
 * Number of tries of one step at a provider without a setting. Each is a model attempt of its own.
 */
export const DEFAULT_TRIES = 3;
/** Maximum number of drivers that a step may lose before it fails: the step may be their cause. */
export const MAX_LOST_DRIVERS = 5;

/** Maximum number of processes that a tool call may lose before it fails. */
export const MAX_LOST_CALL_DRIVERS = 3;
/**
 * The same for a call that waits for another agent. A process may end for another reason while it
 * waits.
 */
const MAX_LOST_WAITING_DRIVERS = 20;
const WAITING_TOOLS: ReadonlySet<string> = new Set(['ask_agent', HAND_OVER]);
/**
 * Number of lost processes from which on work is started alone (`PROCESS_LANE`), so that work
 * that ends its process is not counted against other work.
 */
export const SUSPECT_AFTER = 2;

/**
 * Returns the number of processes that a call has lost whose process is gone. One that released the
 * call is not lost.
 */
export const countLostDrivers = ({ lostDrivers = 0, released = false }: TurnToolCall): number =>
  released ? lostDrivers : lostDrivers + 1;

/** Returns true if a call whose process is gone has lost too many. */
export const hasLostAllDrivers = (call: TurnToolCall): boolean =>
  countLostDrivers(call) >= (WAITING_TOOLS.has(call.name) ? MAX_LOST_WAITING_DRIVERS : MAX_LOST_CALL_DRIVERS);

const BACKOFF_BASE_MS = 500;
/** Maximum backoff between tries, also for a longer `retry-after`. */
export const MAX_BACKOFF_MS = 60_000;

/**
 * Returns the backoff before the next try at the same provider, ms. It grows exponentially with
 * jitter (`random` in [0, 1)), is at least `retryAfterMs` and at most a minute.
 */
export const backoffMs = (failures: number, random: number, retryAfterMs = 0): number => {
  const delay = BACKOFF_BASE_MS * 2 ** Math.max(0, failures - 1);
  return Math.min(MAX_BACKOFF_MS, Math.max(retryAfterMs, delay * (0.5 + random / 2)));
};

export type DeferralReason = SessionEventOf<'ToolCallDeferred'>['data']['reason'];

/** Time for which a call is retried while no sandbox is reachable, from its first try, ms. */
export const SANDBOX_PATIENCE_MS = 30_000;
const FIRST_UNSENT_MS = 250;
const MAX_UNSENT_MS = 2_000;
/** Number of tries without a growing delay: a killed sandbox serves again within a second. */
const QUICK_UNSENT_TRIES = 5;
/**
 * Maximum number of unsent tries, more than the time allows: it also ends after a clock was put
 * back.
 */
const MAX_UNSENT_TRIES = 40;

/** Returns the retry policy of a tool that declares none. */
const defaultPolicy = (idempotent: boolean): ToolRetry => ({
  maxAttempts: idempotent ? 3 : 1,
  backoffMs: 500,
  maxBackoffMs: 30_000,
  onTimeout: false,
});

export const retryPolicyOf = ({ retry, idempotent }: Pick<TurnToolCall, 'retry' | 'idempotent'>): ToolRetry =>
  retry ?? defaultPolicy(idempotent);

const exponential = (first: number, most: number, times: number): number =>
  Math.min(most, first * 2 ** times);

/**
 * Returns the maximum delay before a call's next try, ms: a bound for delays read from a wrong
 * clock.
 */
export const maxRetryDelay = (call: Pick<TurnToolCall, 'retry' | 'idempotent'>): number =>
  Math.max(MAX_UNSENT_MS, retryPolicyOf(call).maxBackoffMs);

export interface FailedTool {
  readonly reason: DeferralReason;
  /** Time since the call's first try without an outcome, ms; 0 for the first. */
  readonly waitedMs: number;
  /** Jitter in [0, 1). */
  readonly random: number;
}

/**
 * Returns the delay before the next try of a tool call without an outcome, ms; null after its last
 * try. A call that reached no tool is retried for half a minute, any other by the tool's policy. A
 * call that is not idempotent is retried only with `unsent`.
 */
export const retryDelay = (
  call: Pick<TurnToolCall, 'retry' | 'idempotent' | 'deferred'>,
  { reason, waitedMs, random }: FailedTool,
): number | null => {
  const { tries = 0, reached = 0 } = call.deferred ?? {};
  const jitter = 0.5 + random / 2;
  if (reason === 'unsent')
    return waitedMs > SANDBOX_PATIENCE_MS || tries >= MAX_UNSENT_TRIES
      ? null
      : exponential(FIRST_UNSENT_MS, MAX_UNSENT_MS, Math.max(0, tries - QUICK_UNSENT_TRIES)) * jitter;
  const { maxAttempts, backoffMs: firstMs, maxBackoffMs } = retryPolicyOf(call);
  return reached + 1 >= maxAttempts ? null : exponential(firstMs, maxBackoffMs, reached) * jitter;
};
