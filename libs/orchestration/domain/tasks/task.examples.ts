import type { Cause } from '@antiphon/contracts/causes';
import type { TaskEvent } from '@antiphon/contracts/agent';
import type { TaskCommand } from './task.decider.js';
import type { TaskQueuedData } from './task-fold.js';

export const NOW = '2026-11-22T10:00:00.000Z';
export const LATER = '2026-11-22T10:00:01.000Z';
export const TASK = '00000000-0000-4000-8000-000000000001';
export const SESSION = '00000000-0000-4000-8000-0000000000a1';
export const TURN = '00000000-0000-4000-8000-0000000000b1';
const schemaVersion = 1;

export const queuedData = (more: Partial<TaskQueuedData> = {}): Omit<TaskQueuedData, 'at'> => ({
  taskId: TASK,
  title: 'Read the log',
  prompt: 'Read the log.',
  priority: 5,
  capabilities: [],
  executor: 'agent',
  agentId: null,
  project: null,
  parentAgentId: null,
  parentTaskId: null,
  deadline: null,
  retry: { strikes: 3, backoffMs: 1_000 },
  budget: null,
  actor: 'key/k1',
  ...more,
});

export const queued = (more: Partial<TaskQueuedData> = {}): TaskEvent => ({
  type: 'TaskQueued',
  schemaVersion,
  data: { ...queuedData(more), at: NOW },
});
export const assigned = (epoch = 1, agentId: string | null = 'main', at = NOW): TaskEvent => ({
  type: 'TaskAssigned',
  schemaVersion,
  data: { taskId: TASK, epoch, worker: workerOf(agentId), agentId, stolen: false, at },
});
export const begun = (epoch = 1, hasTurn = true): TaskEvent => ({
  type: 'TaskBegun',
  schemaVersion,
  data: {
    taskId: TASK,
    epoch,
    sessionId: hasTurn ? SESSION : null,
    turnId: hasTurn ? TURN : null,
    at: NOW,
  },
});
export const requeued = (
  epoch: number,
  reason: 'lost' | 'failed' | 'released',
  more: { code?: string; cause?: Cause; notBefore?: string } = {},
): TaskEvent => ({
  type: 'TaskRequeued',
  schemaVersion: 2,
  data: { taskId: TASK, epoch, reason, code: null, cause: null, notBefore: NOW, at: NOW, ...more },
});
export const cancelRequested = (actor = 'key/k1', cause?: Cause): TaskEvent => ({
  type: 'TaskCancelRequested',
  schemaVersion,
  data: { taskId: TASK, reason: null, ...(cause ? { cause } : {}), actor, at: NOW },
});

type Ended = Extract<TaskEvent, { type: 'TaskEnded' }>['data'];
export const ended = (
  status: Ended['status'],
  more: {
    epoch?: number | null;
    text?: string;
    code?: string | null;
    strikes?: Cause[];
    hasTurn?: boolean;
  } = {},
): TaskEvent => {
  const { epoch = 1, text = '', code = null, strikes = [], hasTurn = true } = more;
  const turn = { sessionId: hasTurn ? SESSION : null, turnId: hasTurn ? TURN : null };
  return {
    type: 'TaskEnded',
    schemaVersion: 2,
    data: { taskId: TASK, status, epoch, result: { status, text, ...turn, code }, strikes, at: NOW },
  };
};

export const workerOf = (agentId: string | null): string => (agentId === null ? 'key/w' : `agent/${agentId}`);

export const queue = (more: Partial<TaskQueuedData> = {}): TaskCommand => ({
  type: 'QueueTask',
  data: queuedData(more),
  now: NOW,
});
export const assign = (epoch = 1, agentId: string | null = 'main', now = NOW): TaskCommand => ({
  type: 'AssignTask',
  data: { epoch, worker: workerOf(agentId), agentId, stolen: false },
  now,
});
export const begin = (epoch = 1, hasTurn = true): TaskCommand => ({
  type: 'BeginTask',
  data: { epoch, sessionId: hasTurn ? SESSION : null, turnId: hasTurn ? TURN : null },
  now: NOW,
});
type Finish = Extract<TaskCommand, { type: 'FinishTask' }>['data'];
export const finish = (outcome: Finish['outcome'], more: Partial<Finish> = {}): TaskCommand => ({
  type: 'FinishTask',
  data: {
    epoch: 1,
    worker: workerOf('main'),
    outcome,
    text: '',
    code: null,
    cause: null,
    isRetryable: true,
    notBefore: LATER,
    ...more,
  },
  now: NOW,
});
export const lose = (epoch = 1): TaskCommand => ({
  type: 'LoseTask',
  data: { epoch, code: 'TASK.LEASE_EXPIRED', notBefore: NOW },
  now: NOW,
});
export const cancel = (actor = 'key/k1'): TaskCommand => ({
  type: 'CancelTask',
  data: { actor, reason: null },
  now: NOW,
});
export const abandon: TaskCommand = {
  type: 'AbandonTask',
  data: { code: 'AGENT.TERMINATED', cause: { kind: 'agent_terminated', agentId: 'main' } },
  now: NOW,
};
export const expire = (now = NOW): TaskCommand => ({ type: 'ExpireTask', data: {}, now });
