import { proxyActivities, upsertSearchAttributes, workflowInfo } from '@temporalio/workflow';
import { tasksQueue } from './tasks-queue.js';

/** Id of a run. Temporal stores ids only; activities read everything else from the log. */
export interface RunRef {
  readonly workspace: string;
  readonly runId: string;
}

export interface TaskToDo {
  readonly nodeId: string;
  readonly agentId: string;
}

/** Progress of a run, in ids only: prompts and outputs never enter a history. */
export interface RunProgress {
  /** Ready and running tasks; empty after the run's end. */
  readonly todo: readonly TaskToDo[];
}

export interface TaskResult extends RunProgress {
  /** Session of the task's turn; null if none was started. */
  readonly sessionId: string | null;
}

/** Activities of a run. Each is safe to repeat. */
export interface RunActivities {
  /** Reads the run's progress from the log, which may have a previous Temporal workflow's tasks. */
  readRun(run: RunRef): Promise<RunProgress>;
  /** Runs one task to its end in the log: a turn of its agent, retried after retryable failures. */
  runTask(task: RunRef & { readonly nodeId: string }): Promise<TaskResult>;
}

const retry = { initialInterval: '500ms', backoffCoefficient: 2, maximumInterval: '30s' } as const;

const { readRun } = proxyActivities<Pick<RunActivities, 'readRun'>>({ startToCloseTimeout: '30s', retry });
// A turn has its own deadlines; missing heartbeats reveal a dead process.
const tasks = () =>
  proxyActivities<Pick<RunActivities, 'runTask'>>({
    taskQueue: tasksQueue(workflowInfo().taskQueue),
    startToCloseTimeout: '24h',
    heartbeatTimeout: '4s',
    retry,
  });

const setSearchAttribute = (name: 'AntiphonAgent' | 'AntiphonSession', value: string): void =>
  upsertSearchAttributes([{ key: { name, type: 'KEYWORD' }, value }]);

/** Runs one run: starts each task once it is ready, and all ready tasks in parallel. */
export async function agentRun(run: RunRef): Promise<void> {
  const started = new Set<string>();
  const { runTask } = tasks();
  const runToEnd = async ({ nodeId, agentId }: TaskToDo): Promise<void> => {
    setSearchAttribute('AntiphonAgent', agentId);
    const result = await runTask({ ...run, nodeId });
    if (result.sessionId !== null) setSearchAttribute('AntiphonSession', result.sessionId);
    await startReady(result);
  };
  const startReady = async ({ todo }: RunProgress): Promise<void> => {
    const fresh = todo.filter(({ nodeId }) => !started.has(nodeId));
    for (const { nodeId } of fresh) started.add(nodeId);
    await Promise.all(fresh.map(runToEnd));
  };
  await startReady(await readRun(run));
}
