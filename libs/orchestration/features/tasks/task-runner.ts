import { causeOf } from '@antiphon/contracts/causes';
import type { TaskFold } from '@antiphon/orchestration-domain';
import type { EventStore, Fence } from '@antiphon/event-store';
import { isAppError } from '@antiphon/kernel';
import type { AppError } from '@antiphon/kernel';
import { isPermanentError } from '../runs/run-task.js';
import type { TurnCommands, TurnEndWatcher, TurnOutcome, TurnRef } from '@antiphon/conversation-features';
import { readOutcome } from '@antiphon/conversation-features';
import type { OpenTasks } from './open-tasks.js';
import type { TaskAgents } from './task-agents.js';
import type { OpenTask } from './task-queues.js';
import type { AttemptOutcome, TaskKnown, TaskStreams } from './task-streams.js';

export interface TaskRunnerDeps {
  readonly store: EventStore;
  readonly tasks: TaskStreams;
  readonly open: OpenTasks;
  readonly turns: TurnCommands;
  readonly turnEnds: Pick<TurnEndWatcher, 'waitForEnd'>;
  readonly agents: TaskAgents;
}

/** Codes of turns whose driver or dependency failed: no failure of the task. */
const LOST_CODES: ReadonlySet<string> = new Set(['TURN.DRIVER_LOST', 'TURN.DEPENDENCY_FAILED']);

/** Returns the turn of a running task; null before it began. */
export const turnOf = ({ workspace, state: { sessionId, turnId } }: OpenTask): TurnRef | null =>
  sessionId === null || turnId === null ? null : { workspace, sessionId, turnId };

/** Code of turns that a budget refused (docs/errors.md). */
const BUDGET_EXCEEDED = 'BUDGET.EXCEEDED';

/** Another attempt finds the budget of the task as empty as this one did. */
const hasSpentAll = ({ state }: OpenTask, outcome: TurnOutcome): boolean =>
  outcome.kind === 'failed' && outcome.code === BUDGET_EXCEEDED && Boolean(state.queued?.budget);

const claimOf = ({ state: { epoch, worker } }: OpenTask): { epoch: number; worker: string } => ({
  epoch,
  worker: worker ?? '',
});

/** Does an agent's task: one turn for each claim, in a session of its own. */
export class AgentTaskRunner {
  constructor(private readonly deps: TaskRunnerDeps) {}

  /**
   * Does an assigned task to its end in the log. Safe to repeat in any process: the turn has an
   * idempotency key for each claim, and the decider ignores repeated events. `onTurn` is called
   * when the turn has been submitted, because a turn counts the processes that it loses.
   */
  async run(
    task: OpenTask,
    fence: Fence,
    signal: AbortSignal,
    onTurn: () => Promise<void> = () => Promise.resolve(),
  ): Promise<void> {
    const begun = task.state.status === 'assigned' ? await this.begin(task, fence) : task;
    const turn = begun && turnOf(begun);
    if (!begun || !turn) return;
    await onTurn();
    await this.deps.turnEnds.waitForEnd(turn, signal);
    const outcome = await readOutcome(this.deps.store, turn);
    await this.end(begun, outcome, fence);
  }

  /** Ends a task as failed, without another attempt. */
  async fail(task: OpenTask, error: AppError, fence: Fence): Promise<void> {
    await this.end(task, { kind: 'failed', code: error.code, cause: causeOf(error) }, fence, false);
  }

  /** Requests the cancel of a task's turn. An ended turn stays as it is. */
  async cancel(task: OpenTask): Promise<void> {
    const turn = turnOf(task);
    if (turn) await this.deps.turns.cancelTurn({ ...turn, caller: 'task' });
  }

  /** Submits the turn of a claim and records it. Returns null if the claim has ended. */
  private async begin(task: OpenTask, fence: Fence): Promise<OpenTask | null> {
    const { workspace, taskId, state } = task;
    const { epoch, agentId } = state;
    // The fold in memory has no prompt.
    const { state: whole } = await this.deps.tasks.read(workspace, taskId);
    if (whole.epoch !== epoch || whole.status !== 'assigned') return this.refresh(task);
    const turn = await this.submit(task, whole.queued?.prompt ?? '', agentId ?? '').catch(
      (error: unknown) => {
        if (!isAppError(error) || !isPermanentError(error.kind)) throw error;
        return { refused: { code: error.code, cause: causeOf(error) } };
      },
    );
    if ('refused' in turn) {
      await this.end(task, { kind: 'failed', ...turn.refused }, fence, false);
      return null;
    }
    const data = { epoch, sessionId: turn.sessionId, turnId: turn.turnId };
    const committed = await this.deps.tasks.commit(
      workspace,
      taskId,
      (_, now) => ({ type: 'BeginTask', data, now }),
      { known: task, fence },
    );
    const begun = { ...task, ...committed };
    this.deps.open.put(begun);
    if (committed.state.epoch === epoch && committed.state.status === 'running') return begun;
    // The claim ended during the submission, and the task does not know of this turn.
    await this.deps.turns.cancelTurn({ workspace, ...data, caller: 'task' });
    return null;
  }

  private submit({ workspace, taskId, state: { epoch } }: OpenTask, content: string, agentId: string) {
    return this.deps.turns.submitTurn({
      workspace,
      target: { address: { agentId, channel: 'task', account: taskId, peer: String(epoch) } },
      content,
      caller: 'task',
      idempotencyKey: `task/${taskId}/${epoch}`,
    });
  }

  private async end(task: OpenTask, outcome: TurnOutcome, fence: Fence, isRetryable = true): Promise<void> {
    const { tasks, open } = this.deps;
    const { workspace, taskId } = task;
    const known: TaskKnown = task;
    const canRetry = isRetryable && !hasSpentAll(task, outcome);
    const lostBy = await this.lossOf(task, outcome);
    const pinned = task.state.queued?.agentId ?? null;
    let committed: { readonly state: TaskFold; readonly version: number };
    if (lostBy === null)
      committed = await tasks.finish(workspace, taskId, claimOf(task), toAttempt(outcome, canRetry), {
        known,
        fence,
      });
    else if (lostBy === 'AGENT.TERMINATED' && pinned !== null) {
      const data = { code: lostBy, cause: { kind: 'agent_terminated', agentId: pinned } } as const;
      const abandon = (_: TaskFold, now: string) => ({ type: 'AbandonTask', data, now }) as const;
      committed = await tasks.commit(workspace, taskId, abandon, { known, fence });
    } else {
      const claim = { epoch: task.state.epoch, code: lostBy };
      committed = await tasks.lose(workspace, taskId, claim, { known, fence });
    }
    open.put({ workspace, taskId, state: committed.state, version: committed.version });
  }

  /** Returns why an attempt counts as lost and not as failed; null if it does not. */
  private async lossOf({ workspace, state }: OpenTask, outcome: TurnOutcome): Promise<string | null> {
    if (outcome.kind === 'completed') return null;
    if (outcome.kind === 'failed' && LOST_CODES.has(outcome.code)) return outcome.code;
    if (state.cancelRequest) return null;
    return (await this.deps.agents.isLiving(workspace, state.agentId ?? '')) ? null : 'AGENT.TERMINATED';
  }

  private async refresh({ workspace, taskId }: OpenTask): Promise<null> {
    const { state, version } = await this.deps.tasks.read(workspace, taskId);
    this.deps.open.put({ workspace, taskId, state, version });
    return null;
  }
}

const toAttempt = (outcome: TurnOutcome, isRetryable: boolean): AttemptOutcome => {
  switch (outcome.kind) {
    case 'completed':
      return { outcome: 'completed', text: outcome.text };
    case 'cancelled':
      return { outcome: 'cancelled' };
    case 'failed':
      return { outcome: 'failed', code: outcome.code, cause: outcome.cause, isRetryable };
  }
};
