import { textCause } from '@antiphon/contracts/causes';
import type { Cause } from '@antiphon/contracts/causes';
import type { SessionEvent } from '@antiphon/contracts/agent';
import { NEVER_BEGUN, reserveBudget, settleBudget } from '@antiphon/contracts/metering';
import type { AgentDirectory } from '@antiphon/agents-features';
import type { Price, ReserveBudgetReply, TaskLimits } from '@antiphon/contracts/metering';
import { thinkingTokens } from '@antiphon/providers-domain';
import type { DriverLimits, ModelPort, ModelPrompt } from '@antiphon/providers-domain';
import type { OpenCall, SessionState } from '@antiphon/conversation-domain';
import type { AgentConfig } from '@antiphon/config';
import { isAppError } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';
import { requestWithRetry } from '@antiphon/messaging';
import type { RequestClient } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import { retryTransient } from '../sessions/retry-transient.js';
import { Stopped } from '../sessions/stopped.js';
import { agentLimitsOf } from './agent-limits.js';
import type { CallToPrepare } from './prepare-call.js';
import { settlementOf } from './settle-calls.js';
import type { Settlement } from './settle-calls.js';
import { createToken } from '@antiphon/service-host';

export interface ReserveDeps {
  readonly models: ModelPort;
  readonly requests: RequestClient;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly agents: Pick<AgentDirectory, 'chainOf'>;
  /** Returns the budgets of the tasks that the open turn is part of. */
  readonly taskBudgets: TaskBudgetsOf;
  readonly times: {
    /** Hard deadline of one model attempt, ms. */
    readonly attemptMs: number;
  };
}

type Choice = Pick<OpenCall, 'provider' | 'model'>;

/** Returns the budgets of the tasks that the open turn of a session is part of. */
export type TaskBudgetsOf = (workspace: string, state: SessionState) => Promise<TaskLimits[]>;

export const TASK_BUDGETS = createToken<TaskBudgetsOf>('TASK_BUDGETS');
/** Models of all providers. */
export const MODEL_PORT = createToken<ModelPort>('MODEL_PORT');

/** Minimum number of output tokens. A call with less budget is refused instead of capped. */
const MIN_OUTPUT_TOKENS = 256;
/**
 * Time for which metering is asked to release an unused reservation, ms. Its sweep finds it
 * afterwards.
 */
const RELEASE_MS = 60_000;
/** Time that a reservation lives longer than its attempt's deadline, ms. */
const GRACE_MS = 60_000;

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

/** Budgets of model calls: the bounds of a call, its reservation and its settlement. */
export class CallBudget {
  constructor(private readonly deps: ReserveDeps) {}

  /** Returns the hard deadline of one model attempt, ms. Its provider has shorter limits. */
  attemptMsOf(call: Choice, agent: AgentConfig | null): number {
    return Math.max(this.deps.times.attemptMs, this.limitsOf(call, agent).longestMs);
  }

  /** Returns the time until the reservation of an attempt expires, ms. */
  lifetimeMsOf(call: Choice, agent: AgentConfig | null): number {
    return this.attemptMsOf(call, agent) + GRACE_MS;
  }

  /** Makes a provider known. Must be called before a prompt for it is bounded. */
  openProvider(workspace: string, provider: string): Promise<void> {
    return this.deps.models.open(provider, workspace);
  }

  /** Returns false for a provider that does not exist. */
  knowsProvider(workspace: string, provider: string): boolean {
    return this.deps.models.knows(provider, workspace);
  }

  /** Returns the maximum number of tokens of a prompt. */
  inputBound(prompt: ModelPrompt, workspace: string): number {
    return this.deps.models.inputBound(prompt, workspace);
  }

  /** Returns the output tokens that a call asks for. Thinking counts towards them. */
  maxOutputOf(call: Choice, agent: AgentConfig | null): number {
    return this.limitsOf(call, agent).maxOutputTokens + thinkingTokens(agent?.thinking);
  }

  /** Returns an agent and its ancestors, the root last. */
  chainOf(workspace: string, agentId: string): string[] {
    return [...this.deps.agents.chainOf(workspace, agentId)];
  }

  /**
   * Reserves the maximum cost of one attempt. The same attempt requests the same reservation in any
   * process. Metering refuses a request whose epoch is over; `Stopped` is thrown then.
   */
  async reserve(
    { workspace, state, call, agent, signal, epoch: currentEpoch }: CallToPrepare,
    prompt: ModelPrompt,
  ): Promise<Reservation> {
    const { requests, clock, logger, taskBudgets } = this.deps;
    const { provider, model } = call;
    const inputBound = this.inputBound(prompt, workspace);
    const maxOutputTokens = this.maxOutputOf(call, agent);
    const lifetimeMs = this.lifetimeMsOf(call, agent);
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
      agents: this.chainOf(workspace, agentId),
      ...(tasks.length === 0 ? {} : { tasks }),
      sessionKey: started?.sessionKey ?? '',
      ...(state.open?.caller === undefined ? {} : { caller: state.open.caller }),
      provider,
      ...this.connectedKindOf(workspace, provider),
      model,
      inputBound,
      maxOutputTokens,
      minOutputTokens: Math.min(MIN_OUTPUT_TOKENS, maxOutputTokens),
      ...(epoch === null ? {} : { epoch }),
      expiresAt: new Date(clock.now() + lifetimeMs).toISOString(),
      lifetimeMs,
    });
    const reserve = async () => {
      const tasks = await taskBudgets(workspace, state);
      return requestWithRetry((options) => requests.request(reserveBudget, toReserve(tasks), options));
    };
    const reply = await stopIfFenced(retryTransient(reserve, signal, logger));
    if (isRefused(reply)) return { granted: false, cause: reply.cause ?? textCause(reply.message) };
    return { granted: true, inputBound, maxOutputTokens: reply.maxOutputTokens, price: reply.price };
  }

  /**
   * Sends metering the usage of the attempts that just ended and that the commit did not settle,
   * without waiting. A lost settlement loses no data: metering settles from the log.
   */
  settle(workspace: string, events: readonly SessionEvent[], settledId?: string): void {
    for (const settlement of events.map(settlementOf))
      if (settlement && settlement.reservationId !== settledId)
        this.send(workspace, settlement).catch((error: unknown) => {
          const { reservationId } = settlement;
          this.deps.logger.info({ err: error, reservationId }, 'budget settlement not delivered');
        });
  }

  /** Releases the reservation of a call that was never begun. */
  async release(workspace: string, reservationId: string): Promise<void> {
    const outcome = { kind: 'not_dispatched' as const, reason: NEVER_BEGUN };
    const release = () => this.send(workspace, { reservationId, outcome });
    await retryTransient(release, AbortSignal.timeout(RELEASE_MS), this.deps.logger);
  }

  /** Metering knows the kinds of configured providers. */
  private connectedKindOf(workspace: string, provider: string): { providerKind?: string } {
    const kind = this.deps.models.connectedKindOf(provider, workspace);
    return kind === null ? {} : { providerKind: kind };
  }

  private limitsOf({ provider, model }: Choice, agent: AgentConfig | null): DriverLimits {
    return this.deps.models.limitsOf({ provider, model }, agentLimitsOf(agent));
  }

  private send(workspace: string, settlement: Settlement): Promise<unknown> {
    return this.deps.requests.request(settleBudget, { workspace, ...settlement });
  }
}
