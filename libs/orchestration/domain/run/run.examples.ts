import type { RunEvent, WorkflowDefinition } from '@antiphon/contracts/agent';

export const NOW = '2026-11-22T10:00:00.000Z';
export const RUN = '00000000-0000-4000-8000-000000000001';
const SESSION = '00000000-0000-4000-8000-0000000000a1';
const TURN = '00000000-0000-4000-8000-0000000000b1';
const schemaVersion = 1;

const node = (id: string, needs: string[] = []) => ({ id, agent: 'main', prompt: id, needs, attempts: 2 });
/** `top`, then `left` and `right` in parallel, then `bottom`. */
export const DIAMOND: WorkflowDefinition = {
  name: 'diamond',
  inputs: {},
  nodes: [node('top'), node('left', ['top']), node('right', ['top']), node('bottom', ['left', 'right'])],
};

const task = (nodeId: string) => ({ runId: RUN, nodeId });

export const startData = {
  runId: RUN,
  workflowId: null,
  workflowVersion: null,
  definition: DIAMOND,
  inputs: {},
};
export const runStarted = (): RunEvent => ({
  type: 'RunStarted',
  schemaVersion,
  data: { ...startData, startedAt: NOW },
});
export const ready = (nodeId: string): RunEvent => ({
  type: 'TaskReady',
  schemaVersion,
  data: { ...task(nodeId), readyAt: NOW },
});
export const taskStarted = (nodeId: string, attempt = 1): RunEvent => ({
  type: 'TaskStarted',
  schemaVersion,
  data: { ...task(nodeId), attempt, agentId: 'main', sessionId: SESSION, turnId: TURN, startedAt: NOW },
});
export const completed = (nodeId: string): RunEvent => ({
  type: 'TaskCompleted',
  schemaVersion,
  data: { ...task(nodeId), attempt: 1, output: `out ${nodeId}`, completedAt: NOW },
});
const cause = { kind: 'text', text: 'no' } as const;
const failure = { code: 'PROVIDER.ERROR', cause, failedAt: NOW };
export const attemptFailed = (nodeId: string, attempt = 1): RunEvent => ({
  type: 'TaskAttemptFailed',
  schemaVersion: 2,
  data: { ...task(nodeId), attempt, ...failure },
});
export const failed = (nodeId: string, attempt = 1): RunEvent => ({
  type: 'TaskFailed',
  schemaVersion: 2,
  data: { ...task(nodeId), attempt, ...failure },
});
export const taskCancelled = (nodeId: string): RunEvent => ({
  type: 'TaskCancelled',
  schemaVersion,
  data: { ...task(nodeId), cancelledAt: NOW },
});
export const cancelRequested = (): RunEvent => ({
  type: 'RunCancelRequested',
  schemaVersion,
  data: { runId: RUN, requestedAt: NOW },
});
export const runCompleted = (): RunEvent => ({
  type: 'RunCompleted',
  schemaVersion,
  data: { runId: RUN, completedAt: NOW },
});
export const runFailed = (...failedNodes: string[]): RunEvent => ({
  type: 'RunFailed',
  schemaVersion,
  data: { runId: RUN, failedNodes, failedAt: NOW },
});
export const runCancelled = (): RunEvent => ({
  type: 'RunCancelled',
  schemaVersion,
  data: { runId: RUN, cancelledAt: NOW },
});

/** Events of a task that succeeds. */
export const done = (nodeId: string): RunEvent[] => [taskStarted(nodeId), completed(nodeId)];

export const start = { type: 'StartRun', data: startData, now: NOW } as const;
export const begin = (nodeId: string, attempt = 1) =>
  ({
    type: 'StartTask',
    data: { nodeId, attempt, sessionId: SESSION, turnId: TURN },
    now: NOW,
  }) as const;
export const complete = (nodeId: string) =>
  ({ type: 'CompleteTask', data: { nodeId, output: `out ${nodeId}` }, now: NOW }) as const;
export const fail = (nodeId: string, retryable: boolean) =>
  ({
    type: 'FailTask',
    data: { nodeId, code: 'PROVIDER.ERROR', cause, retryable },
    now: NOW,
  }) as const;
export const cancelTask = (nodeId: string) => ({ type: 'CancelTask', data: { nodeId }, now: NOW }) as const;
export const cancel = { type: 'CancelRun', data: {}, now: NOW } as const;
