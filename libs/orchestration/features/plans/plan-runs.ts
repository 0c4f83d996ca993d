import { storableCause } from '@antiphon/agent-log';
import type { Cause } from '@antiphon/contracts/causes';
import { textCause } from '@antiphon/contracts/causes';
import type { PlanFold, PlanRun, PlanStep } from '@antiphon/orchestration-domain';
import { WorkTrials, createWorkStarts } from '@antiphon/database';
import { createLogMarks } from '@antiphon/event-store';
import type { LogMarks } from '@antiphon/event-store';
import { createWakeSignal, failpoint, isAppError } from '@antiphon/kernel';
import { Leadership } from '@antiphon/messaging';
import type { AgentDirectory } from '@antiphon/agents-features';
import { isPermanentError } from '../runs/run-task.js';
import { readOutcome } from '@antiphon/conversation-features';
import type { TurnLeaderDeps, TurnRef } from '@antiphon/conversation-features';
import { nextAction, promptOf } from './next-action.js';
import type { Action, End } from './next-action.js';
import { OpenPlanRuns, PlanRunFailures, readPlanRunFacts } from './open-plan-runs.js';
import type { OpenPlanRun } from './open-plan-runs.js';
import type { PlanAt, PlanRef, PlanStore } from './plan-store.js';

export interface PlanRunsDeps extends TurnLeaderDeps {
  readonly plans: PlanStore;
  readonly agents: Pick<AgentDirectory, 'load'>;
  readonly times: PlanTimes;
}

/** Times of the runs of plans, ms. */
export interface PlanTimes {
  readonly leaseMs: number;
  readonly pollMs: number;
}

export const defaultPlanTimes: PlanTimes = { leaseMs: 4_000, pollMs: 500 };

/** Lease of the process that drives the runs of plans. */
const LEASE = 'agent/plans';
const RUNTIME = { actor: 'runtime', agentId: null };

/** Maximum length of a recorded message, UTF-16 units. */
const MAX_MESSAGE = 2_000;

const clip = (text: string): string => text.slice(0, MAX_MESSAGE);

/** Kind of the counted starts of runs. */
const PLAN_RUN = 'plan-run';

/** Time in which this process drives a run. `survive` ends the trial of the run. */
interface Term {
  readonly signal: AbortSignal;
  readonly survive: () => Promise<void>;
}

/**
 * Does the runs of plans: one turn for each step, in a session for each run. One process does so at
 * a time. All that it knows is in the log, so that another process continues where it stopped.
 */
export class PlanRuns {
  private readonly leadership: Leadership;
  private readonly wakeSignal = createWakeSignal();
  /** Open runs that this process works on. */
  private readonly running = new Map<string, Promise<void>>();
  /** Open turns of started steps, by run. */
  private readonly turns = new Map<string, TurnRef>();
  private term = new AbortController();
  private isFailing = false;
  private readonly marks: LogMarks;
  private open: OpenPlanRuns;
  private readonly failures = new PlanRunFailures(() => performance.now());
  private readonly trials: WorkTrials;

  constructor(private readonly deps: PlanRunsDeps) {
    const { leases, owner, logger, times } = deps;
    this.leadership = new Leadership({ leases, owner, logger, leaseMs: times.leaseMs, name: LEASE });
    this.marks = createLogMarks(deps.pool, ['plan']);
    this.trials = new WorkTrials(createWorkStarts(deps.pool));
    this.open = this.createOpenRuns();
  }

  private createOpenRuns(): OpenPlanRuns {
    const { pool } = this.deps;
    // A round that was woken looks for what was committed just before.
    return new OpenPlanRuns(
      (after) => readPlanRunFacts(pool, after),
      () => this.marks.readMark(0),
    );
  }

  /** Starts the next round soon. */
  wake(): void {
    this.wakeSignal.wake();
  }

  /** Drives runs until the signal aborts, then releases the lease. */
  async run(signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', () => this.wake(), { once: true });
    while (!signal.aborted) {
      await this.round().then(
        () => (this.isFailing = false),
        (error: unknown) => this.warnOnce(error),
      );
      if (!signal.aborted) await this.wakeSignal.wait(this.deps.times.pollMs);
    }
    await this.trials
      .release()
      .catch((err: unknown) => this.deps.logger.warn({ work: 'plan-run', err }, 'work not released'));
    this.term.abort(new Error('this process no longer drives plans'));
    await Promise.allSettled(this.running.values());
    await this.marks.close();
    await this.leadership.release().catch((error: unknown) => {
      this.deps.logger.warn({ err: error }, 'plan lease not released');
    });
  }

  private warnOnce(error: unknown): void {
    if (!this.isFailing) this.deps.logger.warn({ err: error }, 'plan runs not driven');
    this.isFailing = true;
  }

  private async round(): Promise<void> {
    if (!this.leadership.isLeader()) {
      this.term.abort(new Error('this process no longer drives plans'));
      this.term = new AbortController();
      if (!(await this.leadership.campaign())) return;
      this.open = this.createOpenRuns();
    }
    for (const run of await this.open.find()) {
      if (this.running.has(run.runId) || this.failures.isWaiting(run.runId)) continue;
      const done = this.trials
        .run(PLAN_RUN, run.runId, (survive) =>
          this.drive(run, run.runId, { signal: this.term.signal, survive }),
        )
        .catch((error: unknown) => this.handleFailure(run, error))
        .catch((error: unknown) => this.warnOnce(error))
        .finally(() => this.running.delete(run.runId));
      this.running.set(run.runId, done);
    }
  }

  /** Drives a run again later. Ends it if a retry would fail again. */
  private async handleFailure({ workspace, path, runId }: OpenPlanRun, error: unknown): Promise<void> {
    if (this.term.signal.aborted) return;
    if (!this.failures.add(runId, error)) {
      this.deps.logger.warn({ err: error, runId }, 'plan run interrupted');
      return;
    }
    this.deps.logger.error({ err: error, runId }, 'plan run failed');
    const cause: Cause = isAppError(error)
      ? { kind: 'error', code: error.code, text: error.message }
      : { kind: 'internal_error' };
    // This process lost the lease during the step. The new leader decides about the run.
    if (!this.leadership.isLeader()) return;
    await this.cancelTurn(runId);
    await this.deps.plans.endRun({ workspace, path }, RUNTIME, {
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
  private async drive(ref: PlanRef, runId: string, term: Term): Promise<void> {
    const { signal } = term;
    while (!signal.aborted && this.leadership.isLeader()) {
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
      this.failures.clear(runId);
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
      return { code: error.code, cause: textCause(error.message) };
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
