import type { RunView, TaskView } from '@antiphon/contracts/agent';
import { isOpenRun } from '@antiphon/agent-domain';
import type { RunState, TaskState } from '@antiphon/agent-domain';
import { clipText } from '@antiphon/agent-domain';
import { notFound } from '@antiphon/kernel';

/** UTF-16 units of one output that a view shows; the log has all of it. */
const SHOWN = 16 * 1024;

const taskView = (task: TaskState, open: boolean): TaskView => {
  const { node, output } = task;
  return {
    id: node.id,
    agent: node.agent,
    needs: node.needs,
    // In a run that has ended, what waits still never began.
    status: task.status === 'waiting' && !open ? 'skipped' : task.status,
    attempt: task.attempt,
    sessionId: task.sessionId,
    turnId: task.turnId,
    output: output === null ? null : clipText(output, SHOWN),
    outputTruncated: output !== null && output.length > SHOWN,
    error: task.error,
    startedAt: task.startedAt,
    endedAt: task.endedAt,
  };
};

/** A run as the outside sees it. Throws `RUN.NOT_FOUND`. */
export const runView = (state: RunState): RunView => {
  const { started, status } = state;
  if (started === null || status === 'new') throw notFound('RUN.NOT_FOUND', 'there is no run with this id');
  const open = isOpenRun(state);
  return {
    id: started.runId,
    workflowId: started.workflowId,
    workflowVersion: started.workflowVersion,
    name: started.definition.name,
    status,
    inputs: started.inputs,
    startedAt: started.startedAt,
    endedAt: state.endedAt,
    tasks: [...state.tasks.values()].map((task) => taskView(task, open)),
  };
};
