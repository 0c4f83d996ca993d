import { textOf } from '@antiphon/contracts/causes';
import type { RunEvent, WorkflowNode } from '@antiphon/contracts/agent';

export type TaskStatus = 'waiting' | 'ready' | 'running' | 'completed' | 'failed' | 'cancelled';
export type RunStatus = 'new' | 'running' | 'cancelling' | 'completed' | 'failed' | 'cancelled';

export interface TaskState {
  readonly node: WorkflowNode;
  readonly status: TaskStatus;
  /** Number of turns that were started for it. */
  readonly attempt: number;
  /** Number of those turns that failed with a retryable error. */
  readonly failedAttempts: number;
  readonly sessionId: string | null;
  readonly turnId: string | null;
  readonly output: string | null;
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly startedAt: string | null;
  readonly endedAt: string | null;
}

type Started = Extract<RunEvent, { type: 'RunStarted' }>['data'];

export interface RunState {
  readonly status: RunStatus;
  readonly started: Started | null;
  /** Tasks by node id, in the order of the definition. */
  readonly tasks: ReadonlyMap<string, TaskState>;
  readonly endedAt: string | null;
}

export const initialRun = (): RunState => ({
  status: 'new',
  started: null,
  tasks: new Map(),
  endedAt: null,
});

const newTask = (node: WorkflowNode): TaskState => ({
  node,
  status: 'waiting',
  attempt: 0,
  failedAttempts: 0,
  sessionId: null,
  turnId: null,
  output: null,
  error: null,
  startedAt: null,
  endedAt: null,
});

const withTask = (state: RunState, nodeId: string, change: Partial<TaskState>): RunState => {
  const task = state.tasks.get(nodeId);
  if (!task) return state;
  return { ...state, tasks: new Map(state.tasks).set(nodeId, { ...task, ...change }) };
};

const evolveTask = (state: RunState, event: RunEvent): RunState => {
  switch (event.type) {
    case 'TaskReady':
      return withTask(state, event.data.nodeId, { status: 'ready' });
    case 'TaskStarted': {
      const { nodeId, attempt, sessionId, turnId, startedAt } = event.data;
      return withTask(state, nodeId, { status: 'running', attempt, sessionId, turnId, startedAt });
    }
    case 'TaskAttemptFailed': {
      const { nodeId, attempt, code, cause } = event.data;
      const message = textOf(cause);
      return withTask(state, nodeId, { status: 'ready', failedAttempts: attempt, error: { code, message } });
    }
    case 'TaskCompleted': {
      const { nodeId, output, completedAt } = event.data;
      return withTask(state, nodeId, { status: 'completed', output, error: null, endedAt: completedAt });
    }
    case 'TaskFailed': {
      const { nodeId, code, cause, failedAt } = event.data;
      const message = textOf(cause);
      return withTask(state, nodeId, { status: 'failed', error: { code, message }, endedAt: failedAt });
    }
    case 'TaskCancelled':
      return withTask(state, event.data.nodeId, { status: 'cancelled', endedAt: event.data.cancelledAt });
    default:
      return state;
  }
};

/** Folds the events of a run. Never throws: recorded events are facts. */
export const evolveRun = (state: RunState, event: RunEvent): RunState => {
  switch (event.type) {
    case 'RunStarted': {
      const tasks = new Map(event.data.definition.nodes.map((node) => [node.id, newTask(node)]));
      return { status: 'running', started: event.data, tasks, endedAt: null };
    }
    case 'RunCancelRequested':
      return { ...state, status: 'cancelling' };
    case 'RunCompleted':
      return { ...state, status: 'completed', endedAt: event.data.completedAt };
    case 'RunFailed':
      return { ...state, status: 'failed', endedAt: event.data.failedAt };
    case 'RunCancelled':
      return { ...state, status: 'cancelled', endedAt: event.data.cancelledAt };
    default:
      return evolveTask(state, event);
  }
};

export const isOpenRun = ({ status }: RunState): boolean => status === 'running' || status === 'cancelling';

/** Returns the ids of ready and running tasks, which Temporal runs as activities. */
export const openTasks = (state: RunState): string[] =>
  isOpenRun(state)
    ? [...state.tasks].flatMap(([id, { status }]) => (status === 'ready' || status === 'running' ? [id] : []))
    : [];
