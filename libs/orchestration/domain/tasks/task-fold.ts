import { textCause } from '@antiphon/contracts/causes';
import type { Cause } from '@antiphon/contracts/causes';
import type { AgentResult, TaskEvent } from '@antiphon/contracts/agent';

export type TaskQueuedData = Extract<TaskEvent, { type: 'TaskQueued' }>['data'];
export type TaskPhase = 'new' | 'queued' | 'assigned' | 'running' | 'completed' | 'failed' | 'cancelled';

/** State of a task of the queue after its events. */
export interface TaskFold {
  readonly status: TaskPhase;
  readonly queued: TaskQueuedData | null;
  /** Number of claims so far. A result of an older claim is refused. */
  readonly epoch: number;
  /** Holder of the claim: `agent/<id>` or a caller. Null while the task is queued. */
  readonly worker: string | null;
  /** Agent of the claim; null while the task is queued and for an external worker. */
  readonly agentId: string | null;
  /** Idempotency key of the claim; null for none. */
  readonly claimKey: string | null;
  readonly sessionId: string | null;
  readonly turnId: string | null;
  /** Earliest time of the next claim; null for none. */
  readonly notBefore: string | null;
  /** Causes of the failed attempts, oldest first. */
  readonly strikes: readonly Cause[];
  /** Number of claims that ended without any result. */
  readonly losses: number;
  readonly cancelRequest: { readonly actor: string; readonly reason: string | null } | null;
  /** Epochs whose results were refused: a repeated result adds no event. */
  readonly refusedEpochs: readonly number[];
  readonly startedAt: string | null;
  readonly endedAt: string | null;
  readonly result: AgentResult | null;
}

export const initialTask = (): TaskFold => ({
  status: 'new',
  queued: null,
  epoch: 0,
  worker: null,
  agentId: null,
  claimKey: null,
  sessionId: null,
  turnId: null,
  notBefore: null,
  strikes: [],
  losses: 0,
  cancelRequest: null,
  refusedEpochs: [],
  startedAt: null,
  endedAt: null,
  result: null,
});

const NO_CLAIM = { worker: null, agentId: null, claimKey: null } as const;

/** Returns the cause of a failed attempt. A worker may have reported a code alone, or nothing. */
export const strikeOf = ({
  code,
  cause,
}: {
  readonly code: string | null;
  readonly cause: Cause | null;
}): Cause => cause ?? (code === null ? { kind: 'attempt_failed' } : textCause(code));

/** Folds the events of a task. Never throws: recorded events are facts. */
export const evolveTask = (state: TaskFold, event: TaskEvent): TaskFold => {
  switch (event.type) {
    case 'TaskQueued':
      return { ...state, status: 'queued', queued: event.data };
    case 'TaskAssigned': {
      const { epoch, worker, agentId, claimKey = null } = event.data;
      const claim = { epoch, worker, agentId, claimKey, sessionId: null, turnId: null, notBefore: null };
      return { ...state, ...claim, status: 'assigned' };
    }
    case 'TaskBegun': {
      const { sessionId, turnId, at } = event.data;
      return { ...state, status: 'running', sessionId, turnId, startedAt: state.startedAt ?? at };
    }
    case 'TaskRequeued': {
      const { reason, notBefore } = event.data;
      const strikes = reason === 'failed' ? [...state.strikes, strikeOf(event.data)] : state.strikes;
      const losses = state.losses + (reason === 'lost' ? 1 : 0);
      return { ...state, ...NO_CLAIM, status: 'queued', strikes, losses, notBefore };
    }
    case 'TaskResultRefused':
      return { ...state, refusedEpochs: [...state.refusedEpochs, event.data.epoch] };
    case 'TaskCancelRequested':
      return { ...state, cancelRequest: { actor: event.data.actor, reason: event.data.reason } };
    case 'TaskEnded': {
      const { status, result, strikes, at } = event.data;
      return { ...state, status, result, strikes, endedAt: at, notBefore: null };
    }
  }
};

/** Returns true for a task that waits or is worked on. */
export const isOpenTask = ({ status }: TaskFold): boolean =>
  status === 'queued' || status === 'assigned' || status === 'running';

/** Returns true for a task with a claim. */
export const isClaimedTask = ({ status }: TaskFold): boolean => status === 'assigned' || status === 'running';
