import { proxyActivities, upsertSearchAttributes, workflowInfo } from '@temporalio/workflow';
import { tasksQueue } from './tasks-queue.js';

/** Which run: all that Temporal is told of it. What it is about is in the log, and is read there each time. */
export interface RunRef {
  readonly workspace: string;
  readonly runId: string;
}

export interface TaskToDo {
  readonly nodeId: string;
  readonly agentId: string;
}

/** Where a run stands, in ids only: prompts and outputs never enter a history. */
export interface RunProgress {
  /** Tasks that may begin now, or that have begun; none once the run has ended. */
  readonly todo: readonly TaskToDo[];
}

export interface TaskDone extends RunProgress {
  /** The session in which its turn ran; null if none was begun. */
  readonly sessionId: string | null;
}

/** What a run needs done outside of its Temporal workflow; each call is safe to repeat. */
export interface RunActivities {
  /** Reads the log: also when this Temporal workflow is not the first one of its run. */
  readRun(run: RunRef): Promise<RunProgress>;
  /** Brings one task to its end in the log: a turn of its agent, again and again while its failures may pass. */
  runTask(task: RunRef & { readonly nodeId: string }): Promise<TaskDone>;
}

const retry = { initialInterval: '500ms', backoffCoefficient: 2, maximumInterval: '30s' } as const;

const { readRun } = proxyActivities<Pick<RunActivities, 'readRun'>>({ startToCloseTimeout: '30s', retry });
// A turn has its own deadlines; a process that dies is noticed by its silence.
const tasks = () =>
  proxyActivities<Pick<RunActivities, 'runTask'>>({
    taskQueue: tasksQueue(workflowInfo().taskQueue),
    startToCloseTimeout: '24h',
    heartbeatTimeout: '4s',
    retry,
  });

const note = (name: 'AntiphonAgent' | 'AntiphonSession', value: string): void =>
  upsertSearchAttributes([{ key: { name, type: 'KEYWORD' }, value }]);

/** Carries one run out: begins each task when the log says that it is ready, those that are ready at once side by side. */
export async function agentRun(run: RunRef): Promise<void> {
  const begun = new Set<string>();
  const { runTask } = tasks();
  const carryOut = async ({ nodeId, agentId }: TaskToDo): Promise<void> => {
    note('AntiphonAgent', agentId);
    const done = await runTask({ ...run, nodeId });
    if (done.sessionId !== null) note('AntiphonSession', done.sessionId);
    await goOn(done);
  };
  const goOn = async ({ todo }: RunProgress): Promise<void> => {
    const fresh = todo.filter(({ nodeId }) => !begun.has(nodeId));
    for (const { nodeId } of fresh) begun.add(nodeId);
    await Promise.all(fresh.map(carryOut));
  };
  await goOn(await readRun(run));
}
