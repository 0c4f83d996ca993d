import type { SessionEvent, SessionEventOf } from '@antiphon/contracts/agent';
import { reserveBudget, settleBudget } from '@antiphon/contracts/metering';
import type { CallOutcome, Price, ReserveBudgetReply, TaskLimits } from '@antiphon/contracts/metering';
import type { ModelPort, ModelPrompt, SessionState } from '@antiphon/agent-domain';
import { isAppError } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';
import { requestWithRetry } from '@antiphon/messaging';
import type { RequestClient } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import type { CallToPrepare } from './prepare-call.js';
import { Stopped, retryTransient } from './step-context.js';

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

export type Reservation =
  | {
      readonly granted: true;
      readonly inputBound: number;
      readonly maxOutputTokens: number;
      readonly price: Price | null;
    }
  | { readonly granted: false; readonly message: string };

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
  const maxOutputTokens = Math.min(MAX_OUTPUT_TOKENS, models.maxOutputTokens(provider, model));
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
    expiresAt: new Date(clock.now() + times.attemptMs + GRACE_MS).toISOString(),
    lifetimeMs: times.attemptMs + GRACE_MS,
  });
  const reserve = async () => {
    const tasks = (await taskBudgets?.(workspace, state)) ?? [];
    return requestWithRetry((options) => requests.request(reserveBudget, toReserve(tasks), options));
  };
  const reply = await stopIfFenced(retryTransient(reserve, signal, logger));
  if (isRefused(reply)) return { granted: false, message: reply.message };
  return { granted: true, inputBound, maxOutputTokens: reply.maxOutputTokens, price: reply.price };
};

const outcomeOfAborted = (data: SessionEventOf<'ModelCallAborted'>['data']): CallOutcome | null => {
  // Nothing was reserved.
  if (data.reason === 'budget_refused') return null;
  if (!data.dispatched) return { kind: 'not_dispatched', reason: data.reason };
  return data.usage ? { kind: 'used', ...data.usage } : { kind: 'unknown' };
};

/** Returns the settlement of an attempt that a committed event ended; null for other events. */
const settlementOf = (event: SessionEvent): { reservationId: string; outcome: CallOutcome } | null => {
  if (event.type === 'ModelCallCompleted')
    return { reservationId: event.data.reservationId, outcome: { kind: 'used', ...event.data.usage } };
  if (event.type !== 'ModelCallAborted') return null;
  const outcome = outcomeOfAborted(event.data);
  return outcome && { reservationId: event.data.reservationId, outcome };
};

/**
 * Sends metering the usage of the attempts that just ended, without waiting. A lost settlement
 * loses no data: metering settles from the log.
 */
export const settleCalls = (
  { requests, logger }: Pick<ReserveDeps, 'requests' | 'logger'>,
  workspace: string,
  events: readonly SessionEvent[],
): void => {
  for (const settlement of events.map(settlementOf)) {
    if (!settlement) continue;
    requests.request(settleBudget, { workspace, ...settlement }).catch((error: unknown) => {
      const { reservationId } = settlement;
      logger.info({ err: error, reservationId }, 'budget settlement not delivered');
    });
  }
};
