import { storableCause } from '@antiphon/agent-log';
import type { Cause } from '@antiphon/contracts/causes';
import { causeOf } from '@antiphon/contracts/causes';
import type { PlanFold, PlanRun, PlanStep } from '@antiphon/orchestration-domain';
import type { EventStore } from '@antiphon/event-store';
import { failpoint, isAppError } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import type { AgentDirectory } from '@antiphon/agents-features';
import { isPermanentError } from '../runs/run-task.js';
import { readOutcome } from '@antiphon/conversation-features';
import type { TurnCommands, TurnEndWatcher, TurnRef } from '@antiphon/conversation-features';
import { nextAction, promptOf } from './next-action.js';
import type { Action, End } from './next-action.js';
import type { PlanTimes } from './plan-runs.js';
import type { PlanAt, PlanRef, PlanStore } from './plan-store.js';

export interface PlanRunDriverDeps {
  readonly plans: PlanStore;
  readonly agents: Pick<AgentDirectory, 'load'>;
  readonly turns: TurnCommands;
  readonly turnEnds: Pick<TurnEndWatcher, 'waitForEnd'>;
  readonly store: EventStore;
  readonly logger: Logger;
  readonly times: Pick<PlanTimes, 'pollMs'>;
}

const RUNTIME = { actor: 'runtime', agentId: null };

/** Maximum length of a recorded message, UTF-16 units. */
const MAX_MESSAGE = 2_000;

const clip = (text: string): string => text.slice(0, MAX_MESSAGE);

/** Time in which this process drives a run. */
interface Term {
  readonly signal: AbortSignal;
  readonly isLeader: () => boolean;
  /** Ends the trial of the run. */
  readonly survive: () => Promise<void>;
  /** Called after each action of the run. */
  readonly onProgress: () => void;
}

/** Drives one run of a plan at a time to its end: a turn of its agent for each step. */
export class PlanRunDriver {
  /** Open turns of started steps, by run. */
  private readonly turns = new Map<string, TurnRef>();

  constructor(private readonly deps: PlanRunDriverDeps) {}

  /** Ends a run that this process cannot drive, with the turn of its started step. */
  async giveUp(ref: PlanRef, runId: string, cause: Cause): Promise<void> {
    await this.cancelTurn(runId);
    await this.deps.plans.endRun(ref, RUNTIME, {
      ...{ runId, reason: 'failed', cause: storableCause(cause, clip) },
    });
  }

  /** Cancels the turn of the started step, so that it does not outlive its run. */
  private async cancelTurn(runId: string): Promise<void> {
    const turn = this.turns.get(runId);
    if (!turn) return;
    await this.deps.turns.cancelTurn({ ...turn, caller: 'plan' }).catch((error: unknown) => {
      this.deps.logger.warn({ err: error, runId }, 'plan turn not cancelled');
    });
    this.turns.delete(runId);
  }

  /** Performs the actions of a run until it ends or waits for its agent. */
  async drive(ref: PlanRef, runId: string, term: Term): Promise<void> {
    while (!term.signal.aborted && term.isLeader()) {
      await failpoint('work.plan.begun', () => `${ref.workspace} ${ref.path} ${runId}`);
      const at = await this.deps.plans.read(ref);
      const { run } = at.state;
      if (!run || run.ended || run.runId !== runId) return;
      const action = await this.actionFor(ref, at, run);
      // A later round continues after the agent's resume.
      if (action === null) return;
      if (action.kind === 'end') return this.end(ref, runId, action);
      if (action.kind === 'start') await this.start(ref, run, action.step);
      else await this.finish(ref, at.state, run, action.step, term);
      term.onProgress();
    }
  }

  /** Returns the next action, with regard to the run's agent; null while the agent is paused. */
  private async actionFor({ workspace }: PlanRef, at: PlanAt, run: PlanRun): Promise<Action | null> {
    const action = nextAction(at, run);
    if (action.kind === 'await') return action;
    const agent = await this.deps.agents.load(workspace, run.agentId);
    const isGone = !agent || agent.status === 'terminated';
    if (isGone && (action.kind === 'start' || action.reason === 'step_failed'))
      return { kind: 'end', reason: 'agent_gone', cause: { kind: 'agent_missing', agentId: run.agentId } };
    return agent?.status === 'paused' && action.kind === 'start' ? null : action;
  }

  private async end(
    ref: PlanRef,
    runId: string,
    { reason, cause }: { readonly reason: End; readonly cause: Cause | null },
  ): Promise<void> {
    const data = { runId, reason, cause: cause && storableCause(cause, clip) };
    await this.deps.plans.change(ref, RUNTIME, () => [{ type: 'EndPlanRun', data }]);
  }

  /** Records the start of a step, if it is still the next one. */
  private async start(ref: PlanRef, { runId, agentId }: PlanRun, { stepId }: PlanStep): Promise<void> {
    const by = { actor: 'runtime', agentId };
    const data = { stepId, runId, sessionId: null, turnId: null };
    await this.deps.plans.change(ref, by, (at) => {
      const { run } = at.state;
      if (!run || run.runId !== runId || run.ended) return [];
      const action = nextAction(at, run);
      if (action.kind !== 'start' || action.step.stepId !== stepId) return [];
      return [{ type: 'StartPlanStep', data }];
    });
  }

  /** Submits the turn of a started step, or joins it, and records its end. */
  private async finish(
    ref: PlanRef,
    state: PlanFold,
    run: PlanRun,
    step: PlanStep,
    { signal, survive }: Term,
  ): Promise<void> {
    const turn = await this.submit(ref, state, run, step).catch((error: unknown) => {
      if (!isAppError(error) || !isPermanentError(error.kind)) throw error;
      return { code: error.code, cause: causeOf(error) };
    });
    if ('code' in turn) return this.fail(ref, run, step, turn);
    this.turns.set(run.runId, turn);
    if (run.isStopRequested) await this.deps.turns.cancelTurn({ ...turn, caller: 'plan' });
    // The turn counts the processes that it loses.
    await survive();
    await this.waitForEnd(ref, run, turn, signal);
    this.turns.delete(run.runId);
    const outcome = await readOutcome(this.deps.store, turn);
    if (outcome.kind === 'failed') return this.fail(ref, run, step, outcome);
    if (outcome.kind === 'cancelled')
      return this.fail(ref, run, step, { code: 'TURN.CANCELLED', cause: { kind: 'turn_cancelled' } });
    // A step that the agent completed is no longer started, and stays as it is.
    const cause = { kind: 'plan_step_not_ended' } as const;
    return this.fail(ref, run, step, { code: 'PLAN.NO_EVIDENCE', cause });
  }

  /** The idempotency key counts the starts of the step, so that a repeated submission joins. */
  private async submit(
    { workspace, path }: PlanRef,
    { created }: PlanFold,
    { runId, agentId }: PlanRun,
    step: PlanStep,
  ): Promise<TurnRef> {
    const { sessionId, turnId } = await this.deps.turns.submitTurn({
      workspace,
      target: { address: { agentId, channel: 'plan', account: created?.planId ?? '', peer: runId } },
      content: promptOf(path, step),
      caller: 'plan',
      idempotencyKey: `plan/${runId}/${step.stepId}/${step.starts}`,
    });
    return { workspace, sessionId, turnId };
  }

  /** Waits for the end of a turn. A stop of the run cancels it. */
  private async waitForEnd(ref: PlanRef, run: PlanRun, turn: TurnRef, signal: AbortSignal): Promise<void> {
    for (let isCancelled = run.isStopRequested; ;) {
      const slice = AbortSignal.timeout(this.deps.times.pollMs);
      try {
        return await this.deps.turnEnds.waitForEnd(turn, AbortSignal.any([signal, slice]));
      } catch (error) {
        if (signal.aborted || !slice.aborted) throw error;
      }
      if (isCancelled || !(await this.isStopRequested(ref, run))) continue;
      await this.deps.turns.cancelTurn({ ...turn, caller: 'plan' });
      isCancelled = true;
    }
  }

  private async isStopRequested(ref: PlanRef, { runId }: PlanRun): Promise<boolean> {
    const { run } = (await this.deps.plans.peek(ref)).state;
    return run?.runId === runId && run.isStopRequested;
  }

  private async fail(
    ref: PlanRef,
    { runId, agentId }: PlanRun,
    { stepId }: PlanStep,
    { code, cause }: { readonly code: string; readonly cause: Cause },
  ): Promise<void> {
    const by = { actor: 'runtime', agentId };
    const data = { stepId, code, cause: storableCause(cause, clip) };
    await this.deps.plans.change(ref, by, ({ state }) => {
      const step = state.steps.find((other) => other.stepId === stepId);
      const isOpen = step?.status === 'started' && state.run?.runId === runId;
      return isOpen ? [{ type: 'FailPlanStep', data }] : [];
    });
  }
}
