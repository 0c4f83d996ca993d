import { textOf } from '../log/causes.js';
import type { RunEvent } from './run-events.js';
import type { RunHistory } from './run-history.js';
import type { RunNodeView, RunView } from './workflow-requests.js';

/** Maximum length of an output in a view, UTF-16 units; the log has all of it. */
const MAX_OUTPUT_LENGTH = 16 * 1024;

type Started = Extract<RunEvent, { type: 'RunStarted' }>['data'];
type Node = Started['definition']['nodes'][number];

/** Clips an output between two characters, and appends a note with its whole length. */
const clipOutput = (output: string): string => {
  if (output.length <= MAX_OUTPUT_LENGTH) return output;
  const last = output.charCodeAt(MAX_OUTPUT_LENGTH - 1);
  const isHalf = last >= 0xd800 && last <= 0xdbff;
  const end = isHalf ? MAX_OUTPUT_LENGTH - 1 : MAX_OUTPUT_LENGTH;
  return `${output.slice(0, end)}… [clipped: ${end} of ${output.length} characters]`;
};

const newTask = ({ id, agent, needs }: Node): RunNodeView => ({
  ...{ id, agent, needs, status: 'waiting', attempt: 0, sessionId: null, turnId: null },
  ...{ output: null, outputTruncated: false, error: null, startedAt: null, endedAt: null },
});

const begin = (started: Started): RunView => {
  const { runId: id, workflowId, workflowVersion, definition, inputs, startedAt } = started;
  return {
    ...{ id, workflowId, workflowVersion, name: definition.name, status: 'running', inputs, startedAt },
    ...{ endedAt: null, tasks: definition.nodes.map(newTask) },
  };
};

const changeTask = (run: RunView, nodeId: string, change: Partial<RunNodeView>): RunView => ({
  ...run,
  tasks: run.tasks.map((task) => (task.id === nodeId ? { ...task, ...change } : task)),
});

/** Ends a run. In an ended run, a waiting task never starts. */
const end = (run: RunView, status: RunView['status'], endedAt: string): RunView => ({
  ...{ ...run, status, endedAt },
  tasks: run.tasks.map((task) => (task.status === 'waiting' ? { ...task, status: 'skipped' } : task)),
});

const completeTask = (
  run: RunView,
  { nodeId, output, completedAt }: Extract<RunEvent, { type: 'TaskCompleted' }>['data'],
): RunView =>
  changeTask(run, nodeId, {
    ...{ status: 'completed', output: clipOutput(output), error: null, endedAt: completedAt },
    outputTruncated: output.length > MAX_OUTPUT_LENGTH,
  });

const evolve = (run: RunView, { type, data }: RunEvent): RunView => {
  switch (type) {
    case 'TaskReady':
      return changeTask(run, data.nodeId, { status: 'ready' });
    case 'TaskStarted': {
      const { nodeId, attempt, sessionId, turnId, startedAt } = data;
      return changeTask(run, nodeId, { status: 'running', attempt, sessionId, turnId, startedAt });
    }
    case 'TaskAttemptFailed':
      return changeTask(run, data.nodeId, {
        ...{ status: 'ready', error: { code: data.code, message: textOf(data.cause) } },
      });
    case 'TaskCompleted':
      return completeTask(run, data);
    case 'TaskFailed': {
      const { nodeId, code, cause, failedAt } = data;
      const message = textOf(cause);
      return changeTask(run, nodeId, { status: 'failed', error: { code, message }, endedAt: failedAt });
    }
    case 'TaskCancelled':
      return changeTask(run, data.nodeId, { status: 'cancelled', endedAt: data.cancelledAt });
    case 'RunCancelRequested':
      return { ...run, status: 'cancelling' };
    case 'RunCompleted':
      return end(run, 'completed', data.completedAt);
    case 'RunFailed':
      return end(run, 'failed', data.failedAt);
    case 'RunCancelled':
      return end(run, 'cancelled', data.cancelledAt);
    default:
      return run;
  }
};

/**
 * Folds events of a run into its public view. Returns null before the run started. Pure: the
 * dashboard folds by it too.
 */
export const foldRun = (events: Iterable<RunEvent>, before: RunView | null = null): RunView | null => {
  let run = before;
  for (const event of events) {
    if (event.type === 'RunStarted') run = begin(event.data);
    else if (run) run = evolve(run, event);
  }
  return run;
};

type Foldable = Pick<RunHistory, 'snapshot'> & {
  readonly events: readonly { readonly event: object; readonly position: number }[];
};

/**
 * Returns the run of a history as of one of its positions, by the fold of the server: what
 * `GET /api/v1/runs/{id}?at=` returns. Returns null before the run started. Pure.
 */
export const foldRunHistory = ({ snapshot, events }: Foldable, at: number): RunView | null =>
  foldRun(
    events.filter(({ position }) => position <= at).map(({ event }) => event as RunEvent),
    snapshot.run,
  );
