import type { SessionEventOf } from '@antiphon/contracts/agent';
import type { ToolRetry } from '@antiphon/contracts/sandbox';
import type { TurnToolCall } from '../session/session-state.js';

export type DeferralReason = SessionEventOf<'ToolCallDeferred'>['data']['reason'];

/** How long a call waits for a sandbox that cannot be reached, from its first try on. */
export const SANDBOX_PATIENCE_MS = 30_000;
const FIRST_UNSENT_MS = 250;
const MAX_UNSENT_MS = 2_000;
/** More tries than that patience has room for: it ends as well when a clock is put back meanwhile. */
const MAX_UNSENT_TRIES = 40;

/** The policy of a call whose tool declares none. */
const undeclared = (idempotent: boolean): ToolRetry => ({
  maxAttempts: idempotent ? 3 : 1,
  backoffMs: 500,
  maxBackoffMs: 30_000,
  onTimeout: false,
});

export const retryPolicyOf = ({ retry, idempotent }: Pick<TurnToolCall, 'retry' | 'idempotent'>): ToolRetry =>
  retry ?? undeclared(idempotent);

const growing = (first: number, most: number, times: number): number => Math.min(most, first * 2 ** times);

/** The most that a call ever waits for its next try, ms, whatever clocks say of when that is due. */
export const maxRetryDelay = (call: Pick<TurnToolCall, 'retry' | 'idempotent'>): number =>
  Math.max(MAX_UNSENT_MS, retryPolicyOf(call).maxBackoffMs);

export interface FailedTool {
  readonly reason: DeferralReason;
  /** Since the first try of this call that gave no outcome, ms; 0 for the first. */
  readonly waitedMs: number;
  /** In [0, 1): jitter. */
  readonly random: number;
}

/**
 * How long to wait before the next try of a call whose last one gave no outcome, in ms; null when that was its last. What
 * reached no tool is tried for half a minute, anything else as often as the tool's policy says. A call that is not
 * idempotent comes here only with `unsent`.
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
      : growing(FIRST_UNSENT_MS, MAX_UNSENT_MS, tries) * jitter;
  const { maxAttempts, backoffMs, maxBackoffMs } = retryPolicyOf(call);
  return reached + 1 >= maxAttempts ? null : growing(backoffMs, maxBackoffMs, reached) * jitter;
};
