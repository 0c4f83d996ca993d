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
  TaskRef & { readonly code: string; readonly message: string; readonly mayPass: boolean }
>;
export type CancelTask = Command<'CancelTask', TaskRef>;
export type CancelRun = Command<'CancelRun', Record<string, never>>;
export type RunCommand = StartRun | StartTask | CompleteTask | FailTask | CancelTask | CancelRun;

/** Events and the state that they lead to. */
interface Story {
  readonly events: readonly RunEvent[];
  readonly state: RunState;
}
const tell = (state: RunState, events: readonly RunEvent[]): Story => ({
  events,
  state: events.reduce(evolveRun, state),
});
const andThen = (story: Story, more: (state: RunState) => readonly RunEvent[]): Story => {
  const next = tell(story.state, more(story.state));
  return { events: [...story.events, ...next.events], state: next.state };
};

const runIdOf = ({ started }: RunState): string => started?.runId ?? '';
const having = (state: RunState, ...statuses: readonly TaskState['status'][]): TaskState[] =>
  [...state.tasks.values()].filter(({ status }) => statuses.includes(status));

/** Tasks that wait for nothing any more. */
const becomeReady =
  (now: string) =>
  (state: RunState): RunEvent[] =>
    state.status !== 'running'
      ? []
      : having(state, 'waiting')
          .filter(({ node }) => node.needs.every((id) => state.tasks.get(id)?.status === 'completed'))
          .map(({ node }) => ({
            type: 'TaskReady',
            schemaVersion,
            data: { runId: runIdOf(state), nodeId: node.id, readyAt: now },
          }));

/** In a run that is being cancelled, what has not begun never does. */
const cancelUnbegun =
  (now: string) =>
  (state: RunState): RunEvent[] =>
    state.status !== 'cancelling'
      ? []
      : having(state, 'ready').map(({ node }) => ({
          type: 'TaskCancelled',
          schemaVersion,
          data: { runId: runIdOf(state), nodeId: node.id, cancelledAt: now },
        }));

/** The run ends once none of its tasks can go on. */
const end =
  (now: string) =>
  (state: RunState): RunEvent[] => {
    const runId = runIdOf(state);
    if (!isOpenRun(state) || having(state, 'ready', 'running').length > 0) return [];
    if (having(state, 'completed').length === state.tasks.size)
      return [{ type: 'RunCompleted', schemaVersion, data: { runId, completedAt: now } }];
    if (state.status === 'cancelling')
      return [{ type: 'RunCancelled', schemaVersion, data: { runId, cancelledAt: now } }];
    const failedNodes = having(state, 'failed', 'cancelled').map(({ node }) => node.id);
    return [{ type: 'RunFailed', schemaVersion, data: { runId, failedNodes, failedAt: now } }];
  };

/** What follows of itself from what has just happened. */
const followed = (story: Story, now: string): RunEvent[] => [
  ...andThen(andThen(andThen(story, becomeReady(now)), cancelUnbegun(now)), end(now)).events,
];

const startRun = ({ data, now }: StartRun, state: RunState): RunEvent[] => {
  if (state.started) throw rejected('RUN.STARTED', `run ${data.runId} has started already`);
  return followed(
    tell(state, [{ type: 'RunStarted', schemaVersion, data: { ...data, startedAt: now } }]),
    now,
  );
};

const startTask = ({ data, now }: StartTask, state: RunState): RunEvent[] => {
  const task = state.tasks.get(data.nodeId);
  // Recorded already by an activity that was begun again, or cancelled meanwhile: no fact.
  if (!isOpenRun(state) || task?.status !== 'ready' || data.attempt !== task.failedAttempts + 1) return [];
  const began = { runId: runIdOf(state), agentId: task.node.agent, ...data, startedAt: now };
  return [{ type: 'TaskStarted', schemaVersion, data: began }];
};

/** The task, if its turn is the one that an outcome can be about. */
const running = (state: RunState, nodeId: string): TaskState | null => {
  const task = state.tasks.get(nodeId);
  return isOpenRun(state) && task?.status === 'running' ? task : null;
};

const completeTask = ({ data, now }: CompleteTask, state: RunState): RunEvent[] => {
  const task = running(state, data.nodeId);
  if (!task) return [];
  const done = { runId: runIdOf(state), attempt: task.attempt, ...data, completedAt: now };
  return followed(tell(state, [{ type: 'TaskCompleted', schemaVersion, data: done }]), now);
};

const failTask = ({ data, now }: FailTask, state: RunState): RunEvent[] => {
  const task = state.tasks.get(data.nodeId);
  if (!task || !isOpenRun(state) || (task.status !== 'running' && task.status !== 'ready')) return [];
  const { nodeId, code, message, mayPass } = data;
  const failed = {
    runId: runIdOf(state),
    nodeId,
    // A turn that could not even be begun counts as an attempt.
    attempt: task.status === 'running' ? task.attempt : task.failedAttempts + 1,
    code,
    message,
    failedAt: now,
  };
  const again = mayPass && state.status === 'running' && failed.attempt < task.node.attempts;
  const type = again ? 'TaskAttemptFailed' : 'TaskFailed';
  return followed(tell(state, [{ type, schemaVersion, data: failed }]), now);
};

const cancelTask = ({ data, now }: CancelTask, state: RunState): RunEvent[] => {
  if (!running(state, data.nodeId)) return [];
  const { nodeId } = data;
  const cancelled = { runId: runIdOf(state), nodeId, cancelledAt: now };
  return followed(tell(state, [{ type: 'TaskCancelled', schemaVersion, data: cancelled }]), now);
};

const cancelRun = ({ now }: CancelRun, state: RunState): RunEvent[] => {
  if (state.status !== 'running') return [];
  const asked = { runId: runIdOf(state), requestedAt: now };
  return followed(tell(state, [{ type: 'RunCancelRequested', schemaVersion, data: asked }]), now);
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
 * The rules of a run. An outcome that comes too late adds no fact. A failed task stops only what needs it: other
 * branches go on, and the run fails once nothing can.
 */
export const runDecider: Decider<RunState, RunCommand, RunEvent> = {
  initialState: initialRun,
  decide,
  evolve: evolveRun,
};
