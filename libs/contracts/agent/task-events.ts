import { z } from 'zod';
import { Cause, event, eventOfCause } from '../log/stored-event.js';
import { AgentBudget, AgentResult } from './agent-definition.js';

/** States of a task. */
export const TASK_STATES = ['queued', 'assigned', 'running', 'completed', 'failed', 'cancelled'] as const;
export const TaskState = z.enum(TASK_STATES);
export type TaskState = z.infer<typeof TaskState>;

/** Retry policy of a task. */
export const TaskRetry = z.object({
  /** Number of failed attempts after which the task fails for good. */
  strikes: z.int().min(1).max(10),
  /** Delay before the second attempt, ms; it doubles with each further one. */
  backoffMs: z.int().min(0).max(3_600_000),
});
export type TaskRetry = z.infer<typeof TaskRetry>;
export const DEFAULT_TASK_RETRY: TaskRetry = { strikes: 3, backoffMs: 1_000 };

const by = { actor: z.string().min(1).max(200), at: z.iso.datetime() };
/** `epoch` counts the claims of the task, from 1. A result of an older epoch is refused. */
const claim = { taskId: z.uuid(), epoch: z.int().positive() };

/** The task is accepted. Exactly one `TaskEnded` follows. */
export const TaskQueued = event('TaskQueued', {
  taskId: z.uuid(),
  title: z.string().min(1).max(500),
  prompt: z.string(),
  /** 0 is the most urgent, 9 the least. */
  priority: z.int().min(0).max(9),
  /** Capabilities that its agent must have. */
  capabilities: z.array(z.string()),
  /** `external`: a program claims it, and no model is called. */
  executor: z.enum(['agent', 'external']).default('agent'),
  /** Agent that must do it; null for any with the capabilities. */
  agentId: z.string().nullable(),
  project: z.string().nullable(),
  /** Agent that delegated it; null for a client's task. */
  parentAgentId: z.string().nullable(),
  parentTaskId: z.uuid().nullable(),
  /** Ended task that this one tries again. */
  retryOf: z.uuid().optional(),
  deadline: z.iso.datetime().nullable(),
  retry: TaskRetry,
  budget: AgentBudget.nullable(),
  ...by,
});
/** An agent or an external worker has claimed the task. */
export const TaskAssigned = event('TaskAssigned', {
  ...claim,
  /** `agent/<id>`, or the caller of an external worker. */
  worker: z.string(),
  agentId: z.string().nullable(),
  /** True if an idle agent took it from the backlog of another. */
  stolen: z.boolean(),
  /** Idempotency key of an external worker's request: a repeat of it gets the same claim. */
  claimKey: z.string().max(200).optional(),
  at: z.iso.datetime(),
});
/** Work began. For an agent, a turn was accepted in a session of its own. */
export const TaskBegun = event('TaskBegun', {
  ...claim,
  sessionId: z.uuid().nullable(),
  turnId: z.uuid().nullable(),
  at: z.iso.datetime(),
});
/** The claim ended without a result, and the task waits again. */
export const TaskRequeued = eventOfCause('TaskRequeued', {
  ...claim,
  /**
   * `lost`: the worker's lease ended. `failed`: the attempt failed, which counts as a strike.
   * `released`: the worker returned the task.
   */
  reason: z.enum(['lost', 'failed', 'released']),
  code: z.string().nullable(),
  cause: Cause.nullable(),
  /** Earliest time of the next claim. */
  notBefore: z.iso.datetime(),
  at: z.iso.datetime(),
});
/** A result of an older claim came after the task had another one. Kept as evidence. */
export const TaskResultRefused = event('TaskResultRefused', {
  ...claim,
  worker: z.string(),
  result: AgentResult,
  at: z.iso.datetime(),
});
export const TaskCancelRequested = event('TaskCancelRequested', {
  taskId: z.uuid(),
  reason: z.string().max(2_000).nullable(),
  /** Reason of the runtime, in place of `reason`. */
  cause: Cause.optional(),
  ...by,
});
export const TaskEnded = eventOfCause('TaskEnded', {
  taskId: z.uuid(),
  status: z.enum(['completed', 'failed', 'cancelled']),
  /** Epoch of the claim that ended it; null if none did. */
  epoch: z.int().positive().nullable(),
  result: AgentResult,
  /** Causes of all strikes, oldest first. */
  strikes: z.array(Cause),
  at: z.iso.datetime(),
});

/** Every event of a `task-<id>` stream. */
export const TaskEvent = z.discriminatedUnion('type', [
  TaskQueued,
  TaskAssigned,
  TaskBegun,
  TaskRequeued,
  TaskResultRefused,
  TaskCancelRequested,
  TaskEnded,
]);
export type TaskEvent = z.infer<typeof TaskEvent>;

export const taskStream = (taskId: string): string => `task-${taskId}`;
const TASK_KEY = /^[^:]*:task:([0-9a-f-]{36}):/i;
/** Returns the id of the task that a session does, from its session key; null for any other. */
export const taskOfSessionKey = (sessionKey: string): string | null =>
  TASK_KEY.exec(sessionKey)?.[1]?.toLowerCase() ?? null;
/** Returns the name of the lease of a claimed task. */
export const taskLease = (taskId: string): string => `task/${taskId}`;
