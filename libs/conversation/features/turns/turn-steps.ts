import { SUSPECT_AFTER, backoffMs, beginCommand, countLostDrivers } from '@antiphon/conversation-domain';
import type { BeginCall, Step, TurnToolCall } from '@antiphon/conversation-domain';
import { createTrialLane, isAppError, sleep } from '@antiphon/kernel';
import { recordTurnStage } from '@antiphon/observability';
import type { Logger } from '@antiphon/observability';
import type { MessageReceiver } from './receive-messages.js';
import type { ApprovalsInTurn } from './approvals-in-turn.js';
import type { CallResult, ModelCalls } from './model-call.js';
import { toFailure } from './model-outcome.js';
import type { ToolResult, ToolRunner } from './run-tools.js';
import type { StepContext, StepOf } from './step-context.js';
import { lostOutcome, unknownOutcome, unstorableOutcome } from './tool-call.js';
import type { TurnPolicy } from './turn-policy.js';

export interface StepDeps {
  readonly receiver: MessageReceiver;
  readonly calls: ModelCalls;
  readonly tools: ToolRunner;
  readonly approvals: ApprovalsInTurn;
  readonly policy: TurnPolicy;
  readonly logger: Logger;
  /** Returns a number in [0, 1) for jitter. */
  readonly random: () => number;
}

/** A step that needs this process to act. */
export type ActiveStep = Exclude<Step, { kind: 'idle' | 'await_approvals' | 'await_resume' }>;

const DRIVER_LOST = { kind: 'driver_lost' } as const;

/** Failure of a call whose outcome the log refuses. */
const NOT_STORABLE = {
  reason: 'provider_protocol',
  cause: { kind: 'answer_not_storable' },
  dispatched: true,
  retryable: false,
} as const;

/** Returns true if the log refuses the events themselves, so that a repeat is refused as well. */
const isUnstorable = (error: unknown): boolean => isAppError(error) && error.code === 'LOG.INVALID';

/** Performs the steps of turns and records their outcomes. */
export class TurnSteps {
  /** A lane of turns alone: a turn holds it for the time of a trial, and other work would wait. */
  private readonly trials = createTrialLane();
  /** Ends of the trials of calls, by call id. */
  private readonly leaving = new Map<string, () => void>();

  constructor(private readonly deps: StepDeps) {}

  /**
   * Performs one step and records its outcome. Returns the minimum delay before the next model call
   * that the provider asked for, ms. Throws `Stopped` if the step was stopped without an outcome.
   */
  async perform(context: StepContext, step: ActiveStep, retryAfterMs: number): Promise<number> {
    try {
      if (step.kind === 'run_call') return await this.runCall(context, step);
      await this.performOther(context, step, retryAfterMs);
    } catch (error) {
      if (!isUnstorable(error)) throw error;
      await this.failUnstorable(context, error);
    }
    return 0;
  }

  /** Makes one attempt of a tool call whose request is being committed. */
  runToolEarly(
    context: Pick<StepContext, 'actor' | 'signal' | 'confirmLease'>,
    turnId: string,
    call: TurnToolCall,
  ): Promise<ToolResult> {
    return this.deps.tools.runEarly(context, turnId, call);
  }

  private performOther(
    context: StepContext,
    step: Exclude<ActiveStep, { kind: 'run_call' }>,
    retryAfterMs: number,
  ): Promise<void> {
    switch (step.kind) {
      case 'begin_call':
        return this.beginCall(context, step, retryAfterMs);
      case 'abandon_call':
        return this.abandonCall(context, step);
      case 'run_tools':
        return this.runTools(context, step);
      case 'abandon_tools':
        return this.abandonTools(context, step);
      case 'restart_tools':
        return this.restartTools(context, step);
      case 'fail_tools':
        return this.failTools(context, step);
      case 'await_tools':
        return this.deps.tools.scheduleRetries(context, step);
      case 'request_approvals':
        return this.deps.approvals.requestApprovals(context, step);
      case 'request_tools':
        return this.deps.approvals.requestTools(context, step);
      // The follow-ups of a commit record all other steps.
      default:
        return context.record(null);
    }
  }

  private async beginCall(context: StepContext, step: BeginCall, retryAfterMs: number): Promise<void> {
    const { receiver, policy, random } = this.deps;
    const { actor, signal, record } = context;
    // Recorded with the start of the call, unless that waits for its backoff.
    if (await receiver.receive(context, step.turnId)) return;
    if (step.lostDrivers >= SUSPECT_AFTER) await this.trials.enter(signal);
    if (step.failures > 0) await sleep(backoffMs(step.failures, random(), retryAfterMs), signal);
    const { state } = actor.fold();
    await record(beginCommand(step, state, policy.contextOf(actor, state)));
  }

  private async runCall(context: StepContext, { call }: StepOf<'run_call'>): Promise<number> {
    const result = await this.deps.calls.run(context, call);
    const answeredAt = performance.now();
    await this.recordResult(context, result);
    recordTurnStage('answer_committed', answeredAt);
    await context.failpoint('agent.turn.recorded');
    return result.retryAfterMs;
  }

  /**
   * Records a failure instead of a response that the log refuses: the next response would be
   * refused as well.
   */
  private async recordResult(context: StepContext, { command }: CallResult): Promise<void> {
    try {
      await context.record(command);
    } catch (error) {
      if (!isUnstorable(error)) throw error;
      this.deps.logger.error({ err: error }, 'model call outcome not storable');
      await context.failpoint('agent.turn.oversized');
      // Clients have received the streamed text, so it is stored.
      const { attempt, text, thought, frames, usage } = command.data;
      const reported = usage && !usage.estimated ? { usage } : {};
      const failure = { ...NOT_STORABLE, ...reported };
      await context.record(toFailure(attempt, failure, command.now, { text, thought, frames }));
    }
  }

  /**
   * Ends the work whose fact the log refuses as failed. A next driver would get the same refusal,
   * and would count as lost.
   */
  private async failUnstorable({ actor, record }: StepContext, error: unknown): Promise<void> {
    const { open: turn } = actor.fold().state;
    if (!turn) throw error;
    this.deps.logger.error({ err: error }, 'turn step not storable');
    const now = this.deps.policy.now();
    if (turn.call) return record(toFailure(turn.call.attempt, NOT_STORABLE, now));
    const { turnId } = turn;
    const calls = turn.steps.flatMap((step) => step.calls).filter(({ status }) => status === 'requested');
    if (calls.length > 0) {
      const outcomes = calls.map(({ callId }) => unstorableOutcome(turnId, callId));
      return record({ type: 'RecordToolOutcomes', data: { outcomes }, now });
    }
    const failure = { code: 'TURN.NOT_STORABLE', cause: { kind: 'fact_not_storable' } } as const;
    return record({ type: 'EndTurn', data: { turnId, ending: 'failed', ...failure }, now });
  }

  private abandonCall({ record }: StepContext, { call }: StepOf<'abandon_call'>): Promise<void> {
    const failure = {
      reason: 'driver_lost' as const,
      cause: DRIVER_LOST,
      dispatched: true,
      retryable: true,
    };
    return record(toFailure(call.attempt, failure, this.deps.policy.now()));
  }

  private async runTools(context: StepContext, step: StepOf<'run_tools'>): Promise<void> {
    await context.failpoint('agent.tool.requested');
    await this.deps.tools.run(context, step).finally(() => this.leaveTrial(step));
    await context.failpoint('agent.tool.recorded');
  }

  /**
   * Records unknown outcomes. Calls that another process may still have in flight are cancelled in
   * the sandbox.
   */
  private async abandonTools(
    context: StepContext,
    { turnId, calls }: StepOf<'abandon_tools'>,
  ): Promise<void> {
    await this.deps.tools.abandon(context, calls);
    const outcomes = calls.map(({ callId }) => unknownOutcome(turnId, callId, DRIVER_LOST));
    return context.record({ type: 'RecordToolOutcomes', data: { outcomes }, now: this.deps.policy.now() });
  }

  /** Starts calls of an ended process again. Those that lost more than one process start alone. */
  private async restartTools(context: StepContext, step: StepOf<'restart_tools'>): Promise<void> {
    const { turnId, calls } = step;
    const isSuspect = calls.some((call) => countLostDrivers(call) >= SUSPECT_AFTER);
    const callIds = calls.map(({ callId }) => callId);
    if (isSuspect) {
      const leave = await this.trials.enter(context.signal);
      for (const callId of callIds) this.leaving.set(callId, leave);
    }
    const now = this.deps.policy.now();
    await context.record({ type: 'RestartTools', data: { turnId, callIds }, now });
  }

  /** Ends the trial of calls that have outcomes. */
  private leaveTrial({ calls }: Pick<StepOf<'run_tools'>, 'calls'>): void {
    for (const { callId } of calls) {
      this.leaving.get(callId)?.();
      this.leaving.delete(callId);
    }
  }

  /**
   * Fails calls that have lost too many processes. The turn itself fails where the calls were not
   * requested yet.
   */
  private async failTools(context: StepContext, { turnId, calls }: StepOf<'fail_tools'>): Promise<void> {
    const now = this.deps.policy.now();
    if (calls.some(({ status }) => status !== 'requested'))
      return context.record({
        ...{ type: 'EndTurn', now },
        data: { turnId, ending: 'failed', code: 'TURN.DRIVER_LOST', cause: { kind: 'preparers_lost' } },
      });
    await this.deps.tools.abandonNative(context, calls);
    const outcomes = calls.map(({ callId }) => lostOutcome(turnId, callId));
    return context.record({ type: 'RecordToolOutcomes', data: { outcomes }, now });
  }
}
