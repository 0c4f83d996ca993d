import { textCause } from '@antiphon/contracts/causes';
import type { Cause } from '@antiphon/contracts/causes';
import { reserveBudget } from '@antiphon/contracts/metering';
import type { Price, ReserveBudgetReply, TaskLimits } from '@antiphon/contracts/metering';
import type { ModelPort, ModelPrompt } from '@antiphon/providers-domain';
import type { SessionState } from '@antiphon/conversation-domain';
import { isAppError } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';
import { requestWithRetry } from '@antiphon/messaging';
import type { RequestClient } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import { retryTransient } from '../sessions/retry-transient.js';
import { Stopped } from '../sessions/stopped.js';
import type { CallToPrepare } from './prepare-call.js';

export interface ReserveDeps {
  readonly models: ModelPort;
  readonly requests: RequestClient;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Returns an agent and its ancestors, the root last. Default: the agent alone. */
  readonly agentChain?: (workspace: string, agentId: string) => readonly string[];
  /** Returns the budgets of the tasks that the open turn is part of. Default: none. */
  readonly taskBudgets?: (workspace: string, state: SessionState) => Promise<TaskLimits[]>;
  readonly times: {
    /** Hard deadline of one model attempt, ms. */
    readonly attemptMs: number;
  };
}

/** Minimum number of output tokens. A call with less budget is refused instead of capped. */
const MIN_OUTPUT_TOKENS = 256;
/** Maximum output of one call, tokens. A reservation withholds its tokens from other calls. */
const MAX_OUTPUT_TOKENS = 4_096;
/** Time that a reservation lives longer than its attempt's deadline, ms. */
const GRACE_MS = 60_000;

/** Returns the output tokens that a call asks for. */
export const maxOutputOf = (models: ModelPort, provider: string, model: string): number =>
  Math.min(MAX_OUTPUT_TOKENS, models.maxOutputTokens(provider, model));

/** Returns the time until a reservation expires, ms. */
export const lifetimeOf = ({ attemptMs }: ReserveDeps['times']): number => attemptMs + GRACE_MS;

export type Reservation =
  | {
      readonly granted: true;
      readonly inputBound: number;
      readonly maxOutputTokens: number;
      readonly price: Price | null;
    }
  | { readonly granted: false; readonly cause: Cause };

export type GrantedReservation = Extract<Reservation, { granted: true }>;

const isRefused = (reply: ReserveBudgetReply): reply is Extract<ReserveBudgetReply, { granted: false }> =>
  !reply.granted;

/**
 * Converts `LOG.FENCED` to `Stopped`: another process holds the session, and its budget is not ours
 * to spend.
 */
const stopIfFenced = async <T>(reply: Promise<T>): Promise<T> => {
  try {
    return await reply;
  } catch (error) {
    throw isAppError(error) && error.code === 'LOG.FENCED' ? new Stopped('lost') : error;
  }
};

/**
 * Reserves the maximum cost of one attempt. The same attempt requests the same reservation in any
 * process. Metering refuses a request whose epoch is over; `Stopped` is thrown then.
 */
export const reserveForCall = async (
  { models, requests, clock, times, logger, agentChain, taskBudgets }: ReserveDeps,
  { workspace, state, call, signal, epoch: currentEpoch }: CallToPrepare,
  prompt: ModelPrompt,
): Promise<Reservation> => {
  const { provider, model } = call;
  const inputBound = models.inputBound(prompt);
  const maxOutputTokens = maxOutputOf(models, provider, model);
  const { started } = state;
  const agentId = started?.agentId ?? '';
  const epoch = currentEpoch();
  const toReserve = (tasks: TaskLimits[]) => ({
    workspace,
    reservationId: call.reservationId,
    sessionId: started?.sessionId ?? '',
    turnId: call.turnId,
    attempt: call.attempt,
    agentId,
    agents: [...(agentChain?.(workspace, agentId) ?? [agentId])],
    ...(tasks.length === 0 ? {} : { tasks }),
    sessionKey: started?.sessionKey ?? '',
    ...(state.open?.caller === undefined ? {} : { caller: state.open.caller }),
    provider,
    model,
    inputBound,
    maxOutputTokens,
    minOutputTokens: Math.min(MIN_OUTPUT_TOKENS, maxOutputTokens),
    ...(epoch === null ? {} : { epoch }),
    expiresAt: new Date(clock.now() + lifetimeOf(times)).toISOString(),
    lifetimeMs: lifetimeOf(times),
  });
  const reserve = async () => {
    const tasks = (await taskBudgets?.(workspace, state)) ?? [];
    return requestWithRetry((options) => requests.request(reserveBudget, toReserve(tasks), options));
  };
  const reply = await stopIfFenced(retryTransient(reserve, signal, logger));
  if (isRefused(reply)) return { granted: false, cause: reply.cause ?? textCause(reply.message) };
  return { granted: true, inputBound, maxOutputTokens: reply.maxOutputTokens, price: reply.price };
};
