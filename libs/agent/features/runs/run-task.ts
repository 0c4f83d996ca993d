import type { RunProgress, RunRef, TaskResult } from '@antiphon/agent-workflows';
import { isOpenRun, runDecider, openTasks } from '@antiphon/agent-domain';
import type { RunCommand, RunState, TaskState } from '@antiphon/agent-domain';
import { failpoint, isoTime, notFound, transient } from '@antiphon/kernel';
import { contextFrom, runWithContext } from '@antiphon/observability';
import type { CancelTurn } from '../turns/cancel-turn.handler.js';
import type { WorkflowServices } from './workflow-services.js';
import type { SubmitTurn } from '../turns/submit-turn.handler.js';
import { beginTask } from './begin-task.js';
import { runEndNotes } from './run-end-notes.js';
import type { TurnEndings, TurnRef } from './turn-ends.js';
import { readOutcome } from './turn-outcome.js';
import type { TurnOutcome } from './turn-outcome.js';

export interface TaskDeps extends WorkflowServices {
  readonly submitTurn: SubmitTurn;
  readonly cancelTurn: CancelTurn;
  readonly endings: TurnEndings;
}

/** Failures of a turn that another turn may not meet. */
const MAY_PASS = /^(PROVIDER\.(UNREACHABLE|TIMEOUT|ERROR|PROTOCOL)|TURN\.(DRIVER_LOST|DEPENDENCY_FAILED))$/;

export const progressOf = (state: RunState): RunProgress => ({
  todo: openTasks(state).map((nodeId) => ({ nodeId, agentId: state.tasks.get(nodeId)?.node.agent ?? '' })),
});

const isOver = (state: RunState, task: TaskState): boolean =>
  !isOpenRun(state) || (task.status !== 'ready' && task.status !== 'running');

const commandFor = (nodeId: string, outcome: TurnOutcome, now: string): RunCommand => {
  switch (outcome.kind) {
    case 'completed':
      return { type: 'CompleteTask', data: { nodeId, output: outcome.text }, now };
    case 'cancelled':
      return { type: 'CancelTask', data: { nodeId }, now };
    case 'failed': {
      const { code, message } = outcome;
      return { type: 'FailTask', data: { nodeId, code, message, retryable: MAY_PASS.test(code) }, now };
    }
  }
};

/**
 * Brings one task to its end in the log. Each step of it is found done when it is done again: the turn by its idempotency
 * key, facts by the decider. Throws `TASK.TRY_AGAIN` (transient) when the turn failed in a way that may pass.
 */
export const createRunTask = (deps: TaskDeps) => {
  const { runs, clock, store, endings, cancelTurn } = deps;

  const record = async (workspace: string, runId: string, command: RunCommand): Promise<RunState> => {
    const { state } = await runs.commit(workspace, runId, ({ state: before }) => {
      const events = runDecider.decide(command, before);
      return { events, also: runEndNotes(deps, before, events) };
    });
    return state;
  };

  const cancel = (turn: TurnRef): Promise<unknown> => cancelTurn({ ...turn, caller: 'run' });

  /** Begins the task's turn, and says so in the run. */
  const begin = async (workspace: string, state: RunState, task: TaskState): Promise<RunState> => {
    const runId = state.started?.runId ?? '';
    const nodeId = task.node.id;
    const begun = await beginTask(deps, workspace, state, task);
    if ('refused' in begun) return record(workspace, runId, begun.refused);
    await failpoint('agent.task.submitted');
    const { sessionId, turnId } = begun.turn;
    const data = { nodeId, attempt: begun.attempt, sessionId, turnId };
    const after = await record(workspace, runId, { type: 'StartTask', data, now: isoTime(clock) });
    await failpoint('agent.task.started');
    // Cancelled while its turn was being accepted: nobody else knows of this turn.
    if (after.tasks.get(nodeId)?.status !== 'running') await cancel({ workspace, sessionId, turnId });
    return after;
  };

  const finish = async (
    run: RunRef,
    state: RunState,
    task: TaskState,
    signal: AbortSignal,
  ): Promise<RunState> => {
    const { workspace, runId } = run;
    const turn = { workspace, sessionId: task.sessionId ?? '', turnId: task.turnId ?? '' };
    if (state.status === 'cancelling') await cancel(turn);
    await endings.ended(turn, signal);
    const outcome = await readOutcome(store, turn);
    await failpoint('agent.task.answered');
    const after = await record(workspace, runId, commandFor(task.node.id, outcome, isoTime(clock)));
    await failpoint('agent.task.recorded');
    return after;
  };

  const carryOut = async (
    run: RunRef & { readonly nodeId: string },
    before: RunState,
    signal: AbortSignal,
  ): Promise<TaskResult> => {
    const taskIn = (state: RunState): TaskState => {
      const task = state.tasks.get(run.nodeId);
      if (!task) throw notFound('TASK.NOT_FOUND', 'the run has no such task');
      return task;
    };
    let state = before;
    if (taskIn(state).status === 'ready') state = await begin(run.workspace, state, taskIn(state));
    if (taskIn(state).status === 'running') state = await finish(run, state, taskIn(state), signal);
    const task = taskIn(state);
    if (!isOver(state, task)) throw transient('TASK.TRY_AGAIN', 'the turn failed in a way that may pass');
    return { ...progressOf(state), sessionId: task.sessionId };
  };

  return async (run: RunRef & { readonly nodeId: string }, signal: AbortSignal): Promise<TaskResult> => {
    const { state, origin, version } = await runs.read(run.workspace, run.runId);
    if (version === 0) throw notFound('RUN.NOT_FOUND', 'there is no run with this id');
    await failpoint('agent.task.claimed');
    // What is done for a run, however much later, belongs to the request that started it.
    return runWithContext(contextFrom('agent', origin), () => carryOut(run, state, signal));
  };
};
