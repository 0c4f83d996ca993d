import type { Cause } from '@antiphon/contracts/causes';
import type { AgentResult, TaskEvent } from '@antiphon/contracts/agent';
import { assertNever, conflict, rejected } from '@antiphon/kernel';
import type { Decider } from '@antiphon/kernel';
import { evolveTask, initialTask, isClaimedTask, isOpenTask, strikeOf } from './task-fold.js';
import type { TaskFold, TaskQueuedData } from './task-fold.js';

const schemaVersion = 1;
/** Actor of a cancel that a passed deadline caused. */
export const DEADLINE_ACTOR = 'runtime/deadline';
/** Maximum delay before another attempt, ms. */
const MAX_BACKOFF_MS = 3_600_000;
/** Number of claims without a result after which the task fails: its work may end its workers. */
export const MAX_LOSSES = 20;
/** Delay after the first claim without a result, ms; it doubles with each further one. */
const LOSS_BACKOFF_MS = 250;
const MAX_LOSS_BACKOFF_MS = 60_000;

/** `now`: ISO 8601, UTC. */
interface Command<T extends string, Data> {
  readonly type: T;
  readonly data: Data;
  readonly now: string;
}
export type QueueTask = Command<'QueueTask', Omit<TaskQueuedData, 'at'>>;
export type AssignTask = Command<
  'AssignTask',
  {
    readonly epoch: number;
    readonly worker: string;
    readonly agentId: string | null;
    readonly stolen: boolean;
    readonly claimKey?: string;
  }
>;
export type BeginTask = Command<
  'BeginTask',
  { readonly epoch: number; readonly sessionId: string | null; readonly turnId: string | null }
>;
export type FinishTask = Command<
  'FinishTask',
  {
    readonly epoch: number;
    readonly worker: string;
    readonly outcome: 'completed' | 'failed' | 'released' | 'cancelled';
    readonly text: string;
    readonly code: string | null;
    /** Reason of a failure, for a person. */
    readonly cause: Cause | null;
    /** False if another attempt would fail in the same way. */
    readonly isRetryable: boolean;
    /** Earliest time of another attempt after a failure (`failureDelayMs`). */
    readonly notBefore: string;
  }
>;
/** The claim ended without a result: its worker is gone. */
export type LoseTask = Command<
  'LoseTask',
  {
    readonly epoch: number;
    readonly code: string;
    /** Earliest time of the next claim (`lossDelayMs`). */
    readonly notBefore: string;
  }
>;
export type CancelQueuedTask = Command<
  'CancelTask',
  { readonly actor: string; readonly reason: string | null }
>;
/** Ends a task that no agent can do any more. */
export type AbandonTask = Command<'AbandonTask', { readonly code: string; readonly cause: Cause }>;
export type ExpireTask = Command<'ExpireTask', Record<never, never>>;

export type TaskCommand =
  QueueTask | AssignTask | BeginTask | FinishTask | LoseTask | CancelQueuedTask | AbandonTask | ExpireTask;

const taskIdOf = ({ queued }: TaskFold): string => queued?.taskId ?? '';
const hasClaim = (state: TaskFold, epoch: number): boolean => isClaimedTask(state) && state.epoch === epoch;

interface End {
  readonly status: 'completed' | 'failed' | 'cancelled';
  readonly text?: string;
  readonly code?: string | null;
  readonly strikes?: readonly Cause[];
}

const resultOf = ({ sessionId, turnId }: TaskFold, { status, text = '', code = null }: End): AgentResult => ({
  status,
  text,
  sessionId,
  turnId,
  code,
});

const end = (state: TaskFold, now: string, how: End): TaskEvent => ({
  type: 'TaskEnded',
  schemaVersion: 2,
  data: {
    taskId: taskIdOf(state),
    status: how.status,
    epoch: isClaimedTask(state) ? state.epoch : null,
    result: resultOf(state, how),
    strikes: [...(how.strikes ?? state.strikes)],
    at: now,
  },
});

const endCancelled = (state: TaskFold, now: string): TaskEvent =>
  state.cancelRequest?.actor === DEADLINE_ACTOR
    ? end(state, now, { status: 'failed', code: 'TASK.DEADLINE_PASSED' })
    : end(state, now, { status: 'cancelled' });

interface Requeue {
  readonly reason: 'lost' | 'failed' | 'released';
  readonly code: string | null;
  readonly cause: Cause | null;
  readonly notBefore: string;
}

/** Returns the delay before the attempt that follows another failure, ms. */
export const failureDelayMs = ({ queued, strikes }: TaskFold): number =>
  Math.min(MAX_BACKOFF_MS, (queued?.retry.backoffMs ?? 0) * 2 ** strikes.length);

/** Returns the delay before the claim that follows another loss, ms; none after the first. */
export const lossDelayMs = ({ losses }: TaskFold): number =>
  losses === 0 ? 0 : Math.min(MAX_LOSS_BACKOFF_MS, LOSS_BACKOFF_MS * 2 ** losses);

/** Returns the task to the queue, or ends it if its cancel was requested. */
const requeue = (state: TaskFold, now: string, why: Requeue): TaskEvent => {
  if (state.cancelRequest) return endCancelled(state, now);
  const claim = { taskId: taskIdOf(state), epoch: state.epoch };
  return { type: 'TaskRequeued', schemaVersion: 2, data: { ...claim, ...why, at: now } };
};

const queueTask = ({ data, now }: QueueTask, state: TaskFold): TaskEvent[] => {
  if (state.status !== 'new') throw rejected('TASK.EXISTS', `task ${data.taskId} exists already`);
  return [{ type: 'TaskQueued', schemaVersion, data: { ...data, at: now } }];
};

const assignTask = ({ data, now }: AssignTask, state: TaskFold): TaskEvent[] => {
  const isDue = state.notBefore === null || state.notBefore <= now;
  if (state.status !== 'queued' || !isDue || data.epoch !== state.epoch + 1)
    throw conflict('TASK.CLAIMED', 'the task cannot be claimed now');
  return [{ type: 'TaskAssigned', schemaVersion, data: { taskId: taskIdOf(state), ...data, at: now } }];
};

const beginTask = ({ data, now }: BeginTask, state: TaskFold): TaskEvent[] =>
  state.status === 'assigned' && state.epoch === data.epoch
    ? [{ type: 'TaskBegun', schemaVersion, data: { taskId: taskIdOf(state), ...data, at: now } }]
    : [];

/** Keeps a result of an older claim as evidence, once. The current claim may repeat its result. */
const refuseResult = ({ data, now }: FinishTask, state: TaskFold): TaskEvent[] => {
  const { epoch, worker, outcome, text, code } = data;
  const isRepeat = state.epoch === epoch && state.worker === worker && state.result?.status === outcome;
  if (state.status === 'new' || epoch > state.epoch || isRepeat || state.refusedEpochs.includes(epoch))
    return [];
  const status = outcome === 'released' ? 'failed' : outcome;
  const result: AgentResult = { status, text, sessionId: null, turnId: null, code };
  const refused = { taskId: taskIdOf(state), epoch, worker, result, at: now };
  return [{ type: 'TaskResultRefused', schemaVersion, data: refused }];
};

const failAttempt = ({ data, now }: FinishTask, state: TaskFold): TaskEvent => {
  const { code, isRetryable } = data;
  const cause = strikeOf(data);
  const strikes = [...state.strikes, cause];
  if (isRetryable && strikes.length < (state.queued?.retry.strikes ?? 1))
    return requeue(state, now, { reason: 'failed', code, cause, notBefore: data.notBefore });
  if (state.cancelRequest) return endCancelled({ ...state, strikes }, now);
  return end(state, now, { status: 'failed', text: data.text, code: code ?? 'TASK.FAILED', strikes });
};

const finishTask = (command: FinishTask, state: TaskFold): TaskEvent[] => {
  const { data, now } = command;
  if (!hasClaim(state, data.epoch) || state.worker !== data.worker) return refuseResult(command, state);
  switch (data.outcome) {
    case 'completed':
      return [end(state, now, { status: 'completed', text: data.text })];
    case 'cancelled':
      return [endCancelled(state, now)];
    case 'failed':
      return [failAttempt(command, state)];
    case 'released':
      return [requeue(state, now, { reason: 'released', code: data.code, cause: null, notBefore: now })];
  }
};

const loseTask = ({ data, now }: LoseTask, state: TaskFold): TaskEvent[] => {
  if (!hasClaim(state, data.epoch)) return [];
  if (state.losses + 1 >= MAX_LOSSES && !state.cancelRequest)
    return [end(state, now, { status: 'failed', code: 'TASK.WORKER_LOST' })];
  const { code, notBefore } = data;
  return [requeue(state, now, { reason: 'lost', code, cause: null, notBefore })];
};

/** Requests the end of a task. An agent's turn ends it later, so that a finished result stays. */
const stopTask = (
  state: TaskFold,
  now: string,
  why: { readonly actor: string; readonly reason: string | null; readonly cause?: Cause },
): TaskEvent[] => {
  if (!isOpenTask(state) || state.cancelRequest) return [];
  const data = { taskId: taskIdOf(state), ...why, at: now };
  const request: TaskEvent = { type: 'TaskCancelRequested', schemaVersion, data };
  const isTurn = isClaimedTask(state) && state.queued?.executor === 'agent';
  return isTurn ? [request] : [request, endCancelled(evolveTask(state, request), now)];
};

const expireTask = ({ now }: ExpireTask, state: TaskFold): TaskEvent[] => {
  const deadline = state.queued?.deadline ?? null;
  if (deadline === null || now < deadline) return [];
  return stopTask(state, now, { actor: DEADLINE_ACTOR, reason: null, cause: { kind: 'deadline_reached' } });
};

const abandonTask = ({ data, now }: AbandonTask, state: TaskFold): TaskEvent[] => {
  if (!isOpenTask(state)) return [];
  if (state.cancelRequest) return [endCancelled(state, now)];
  const strikes = [...state.strikes, data.cause];
  return [end(state, now, { status: 'failed', code: data.code, strikes })];
};

const decide = (command: TaskCommand, state: TaskFold): TaskEvent[] => {
  switch (command.type) {
    case 'QueueTask':
      return queueTask(command, state);
    case 'AssignTask':
      return assignTask(command, state);
    case 'BeginTask':
      return beginTask(command, state);
    case 'FinishTask':
      return finishTask(command, state);
    case 'LoseTask':
      return loseTask(command, state);
    case 'CancelTask':
      return stopTask(state, command.now, command.data);
    case 'AbandonTask':
      return abandonTask(command, state);
    case 'ExpireTask':
      return expireTask(command, state);
    default:
      return assertNever(command);
  }
};

/** Decides the commands of a task. Exactly one `TaskEnded` follows each `TaskQueued`. */
export const taskDecider: Decider<TaskFold, TaskCommand, TaskEvent> = {
  initialState: initialTask,
  decide,
  evolve: evolveTask,
};
