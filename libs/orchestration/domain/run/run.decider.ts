import type { Cause } from '@antiphon/contracts/causes';
import type { RunEvent, RunInputs, WorkflowDefinition } from '@antiphon/contracts/agent';
import { assertNever, rejected } from '@antiphon/kernel';
import type { Decider } from '@antiphon/kernel';
import { evolveRun, initialRun, isOpenRun } from './run-state.js';
import type { RunState, TaskState } from './run-state.js';

const schemaVersion = 1;

/** `now`: ISO 8601, UTC. */
interface Command<T extends string, Data> {
  readonly type: T;
  readonly data: Data;
  readonly now: string;
}
interface TaskRef {
  readonly nodeId: string;
}

export type StartRun = Command<
  'StartRun',
  {
    readonly runId: string;
    readonly workflowId: string | null;
    readonly workflowVersion: number | null;
    readonly definition: WorkflowDefinition;
    readonly inputs: RunInputs;
  }
>;
export type StartTask = Command<
  'StartTask',
  TaskRef & { readonly attempt: number; readonly sessionId: string; readonly turnId: string }
>;
export type CompleteTask = Command<'CompleteTask', TaskRef & { readonly output: string }>;
export type FailTask = Command<
  'FailTask',
  TaskRef & { readonly code: string; readonly cause: Cause; readonly retryable: boolean }
>;
export type CancelTask = Command<'CancelTask', TaskRef>;
export type CancelRun = Command<'CancelRun', Record<string, never>>;
export type RunCommand = StartRun | StartTask | CompleteTask | FailTask | CancelTask | CancelRun;

/** Events of a decision, and the state after them. */
interface Progress {
  readonly events: readonly RunEvent[];
  readonly state: RunState;
}
const advance = (state: RunState, events: readonly RunEvent[]): Progress => ({
  events,
  state: events.reduce(evolveRun, state),
});
const appendDecision = (
  progress: Progress,
  decideNext: (state: RunState) => readonly RunEvent[],
): Progress => {
  const next = advance(progress.state, decideNext(progress.state));
  return { events: [...progress.events, ...next.events], state: next.state };
};

const runIdOf = ({ started }: RunState): string => started?.runId ?? '';
const tasksWithStatus = (state: RunState, ...statuses: readonly TaskState['status'][]): TaskState[] =>
  [...state.tasks.values()].filter(({ status }) => statuses.includes(status));

/** Marks waiting tasks as ready once all tasks they need are completed. */
const markReady =
  (now: string) =>
  (state: RunState): RunEvent[] =>
    state.status !== 'running'
      ? []
      : tasksWithStatus(state, 'waiting')
          .filter(({ node }) => node.needs.every((id) => state.tasks.get(id)?.status === 'completed'))
          .map(({ node }) => ({
            type: 'TaskReady',
            schemaVersion,
            data: { runId: runIdOf(state), nodeId: node.id, readyAt: now },
          }));

/** Cancels the tasks of a cancelling run that have not started. */
const cancelReady =
  (now: string) =>
  (state: RunState): RunEvent[] =>
    state.status !== 'cancelling'
      ? []
      : tasksWithStatus(state, 'ready').map(({ node }) => ({
          type: 'TaskCancelled',
          schemaVersion,
          data: { runId: runIdOf(state), nodeId: node.id, cancelledAt: now },
        }));

/** Ends the run once none of its tasks is ready or running. */
const endRun =
  (now: string) =>
  (state: RunState): RunEvent[] => {
    const runId = runIdOf(state);
    if (!isOpenRun(state) || tasksWithStatus(state, 'ready', 'running').length > 0) return [];
    if (tasksWithStatus(state, 'completed').length === state.tasks.size)
      return [{ type: 'RunCompleted', schemaVersion, data: { runId, completedAt: now } }];
    if (state.status === 'cancelling')
      return [{ type: 'RunCancelled', schemaVersion, data: { runId, cancelledAt: now } }];
    const failedNodes = tasksWithStatus(state, 'failed', 'cancelled').map(({ node }) => node.id);
    return [{ type: 'RunFailed', schemaVersion, data: { runId, failedNodes, failedAt: now } }];
  };

/**
 * Appends the decisions that follow from a change: ready tasks, cancelled tasks, the end of the
 * run.
 */
const withConsequences = (progress: Progress, now: string): RunEvent[] => [
  ...[markReady(now), cancelReady(now), endRun(now)].reduce(appendDecision, progress).events,
];

const startRun = ({ data, now }: StartRun, state: RunState): RunEvent[] => {
  if (state.started) throw rejected('RUN.STARTED', `run ${data.runId} has started already`);
  return withConsequences(
    advance(state, [{ type: 'RunStarted', schemaVersion, data: { ...data, startedAt: now } }]),
    now,
  );
};

const startTask = ({ data, now }: StartTask, state: RunState): RunEvent[] => {
  const task = state.tasks.get(data.nodeId);
  // A repeated activity may have recorded it already, or a cancel came first: no event.
  if (!isOpenRun(state) || task?.status !== 'ready' || data.attempt !== task.failedAttempts + 1) return [];
  const began = { runId: runIdOf(state), agentId: task.node.agent, ...data, startedAt: now };
  return [{ type: 'TaskStarted', schemaVersion, data: began }];
};

/** Returns the task if it is running, else null: the outcome is stale. */
const runningTask = (state: RunState, nodeId: string): TaskState | null => {
  const task = state.tasks.get(nodeId);
  return isOpenRun(state) && task?.status === 'running' ? task : null;
};

const completeTask = ({ data, now }: CompleteTask, state: RunState): RunEvent[] => {
  const task = runningTask(state, data.nodeId);
  if (!task) return [];
  const done = { runId: runIdOf(state), attempt: task.attempt, ...data, completedAt: now };
  return withConsequences(advance(state, [{ type: 'TaskCompleted', schemaVersion, data: done }]), now);
};

const failTask = ({ data, now }: FailTask, state: RunState): RunEvent[] => {
  const task = state.tasks.get(data.nodeId);
  if (!task || !isOpenRun(state) || (task.status !== 'running' && task.status !== 'ready')) return [];
  const { nodeId, code, cause, retryable } = data;
  const failed = {
    runId: runIdOf(state),
    nodeId,
    // A turn that was refused counts as an attempt too.
    attempt: task.status === 'running' ? task.attempt : task.failedAttempts + 1,
    code,
    cause,
    failedAt: now,
  };
  const isRetried = retryable && state.status === 'running' && failed.attempt < task.node.attempts;
  const type = isRetried ? 'TaskAttemptFailed' : 'TaskFailed';
  return withConsequences(advance(state, [{ type, schemaVersion: 2, data: failed }]), now);
};

const cancelTask = ({ data, now }: CancelTask, state: RunState): RunEvent[] => {
  if (!runningTask(state, data.nodeId)) return [];
  const { nodeId } = data;
  const cancelled = { runId: runIdOf(state), nodeId, cancelledAt: now };
  return withConsequences(advance(state, [{ type: 'TaskCancelled', schemaVersion, data: cancelled }]), now);
};

const cancelRun = ({ now }: CancelRun, state: RunState): RunEvent[] => {
  if (state.status !== 'running') return [];
  const asked = { runId: runIdOf(state), requestedAt: now };
  return withConsequences(advance(state, [{ type: 'RunCancelRequested', schemaVersion, data: asked }]), now);
};

const decide = (command: RunCommand, state: RunState): RunEvent[] => {
  switch (command.type) {
    case 'StartRun':
      return startRun(command, state);
    case 'StartTask':
      return startTask(command, state);
    case 'CompleteTask':
      return completeTask(command, state);
    case 'FailTask':
      return failTask(command, state);
    case 'CancelTask':
      return cancelTask(command, state);
    case 'CancelRun':
      return cancelRun(command, state);
    default:
      return assertNever(command);
  }
};

/**
 * Decides the commands of a run. A stale outcome produces no event. A failed task stops only the
 * tasks that need it: other branches continue, and the run fails once none is left.
 */
export const runDecider: Decider<RunState, RunCommand, RunEvent> = {
  initialState: initialRun,
  decide,
  evolve: evolveRun,
};
