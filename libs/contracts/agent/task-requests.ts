import { z } from 'zod';
import { asOfReply, asOfRequest } from '../log/as-of.js';
import { WorkspaceId } from '../log/index.js';
import { defineRequest } from '../messaging/index.js';
import { AgentBudget, AgentResult } from './agent-definition.js';
import { AgentId } from './agent-id.js';
import { AgentActor } from './agent-requests.js';
import { IdempotencyKey, MessageContent } from './requests.js';
import type { TaskWaitFields } from './task-waits.js';
import { TaskRetry, TaskState } from './task-events.js';

/** A task as a client or an agent sends it. */
export const TaskSpec = z.strictObject({
  title: z.string().min(1).max(500).optional().describe('Default: the beginning of the prompt.'),
  prompt: MessageContent,
  priority: z.int().min(0).max(9).default(5).describe('0 is the most urgent, 9 the least.'),
  capabilities: z.array(z.string().min(1).max(64)).max(64).default([]),
  agent: AgentId.optional().describe('Agent that must do it. Default: any idle agent with the capabilities.'),
  project: z.string().min(1).max(200).optional(),
  parentTask: z.uuid().optional(),
  retryOf: z
    .uuid()
    .optional()
    .describe('Ended task of the queue that this one tries again. It then needs no person any more.'),
  deadline: z.iso
    .datetime({
      offset: true,
      error: 'give a time with its zone, such as 2026-11-27T18:00:00Z or 2026-11-27T18:00:00+05:30',
    })
    .optional()
    .describe('A task that has not ended then fails. An ISO 8601 time with `Z` or an offset.'),
  retry: TaskRetry.partial().optional().describe('Default: 3 strikes, 1,000 ms backoff.'),
  budget: AgentBudget.optional().describe(
    'What all attempts may spend in model calls, with the tasks and agents that they ask. A task that reaches it fails.',
  ),
  worker: z
    .enum(['agent', 'external'])
    .default('agent')
    .describe('`external`: a program claims it by `POST /api/v1/tasks/claim`, and no model is called.'),
});
export type TaskSpec = z.infer<typeof TaskSpec>;

/** Reason for which a task waits (`textOfTaskWait` has its text). */
export const TaskWait = z.object({
  reason: z.enum(['no_agent', 'paused', 'busy', 'next', 'retry', 'worker']),
  missing: z
    .array(z.string())
    .readonly()
    .describe('Capabilities that no agent has; all of the task if no agent has them together.'),
  agentId: z.string().nullable().describe('Agent that must do it; null for any with the capabilities.'),
  place: z.int().positive().nullable().describe('Place among the tasks that wait for the same agents.'),
  until: z.iso.datetime().nullable().describe('Earliest time of the next try.'),
}) satisfies z.ZodType<TaskWaitFields>;
export type TaskWait = z.infer<typeof TaskWait>;

/** A task as the API lists it: one of the queue, or a node of a run. */
export const TaskItem = z.object({
  id: z.string().describe('UUID, or `<runId>/<nodeId>` for a node of a run.'),
  kind: z.enum(['task', 'run_node']),
  title: z.string(),
  state: TaskState,
  priority: z.int(),
  capabilities: z.array(z.string()),
  agentId: z.string().nullable().describe('Agent that has it, or must do it; null for none yet.'),
  worker: z.string().nullable().describe('Holder of the claim: `agent/<id>` or the caller of a program.'),
  epoch: z.int().nonnegative().describe('Number of claims so far.'),
  strikes: z.array(z.string()).describe('Messages of the failed attempts, oldest first.'),
  project: z.string().nullable(),
  parentAgentId: z.string().nullable(),
  parentTaskId: z.string().nullable(),
  retryOf: z.uuid().nullable().optional().describe('Task that this one tries again; null for none.'),
  retriedBy: z.uuid().nullable().optional().describe('Newest task that tries this one again; null for none.'),
  deadline: z.iso.datetime().nullable(),
  sessionId: z.uuid().nullable(),
  turnId: z.uuid().nullable(),
  queuedAt: z.iso.datetime(),
  startedAt: z.iso.datetime().nullable(),
  endedAt: z.iso.datetime().nullable(),
  result: AgentResult.nullable(),
  waiting: TaskWait.nullable()
    .optional()
    .describe('Reason for which a queued task waits now; null for any other. Absent with `at`.'),
});
export type TaskItem = z.infer<typeof TaskItem>;

const target = { workspace: WorkspaceId, taskId: z.string().min(1).max(200) };

/**
 * Accepts a task. It waits until an agent with its capabilities is idle. Errors: `TASK.QUEUE_FULL`
 * (exhausted, with `retryAfterSeconds`), `AGENT.NOT_FOUND`.
 */
export const createTask = defineRequest({
  subject: 'cmd.agent.task.create',
  request: z.strictObject({
    workspace: WorkspaceId,
    spec: TaskSpec,
    actor: AgentActor,
    idempotencyKey: IdempotencyKey.optional(),
  }),
  reply: z.object({ task: TaskItem }),
  timeoutMs: 10_000,
});

export const getTask = defineRequest({
  subject: 'cmd.agent.task.get',
  request: z.strictObject({ ...target, ...asOfRequest }),
  reply: z.object({ task: TaskItem, ...asOfReply }),
  timeoutMs: 15_000,
});

/** Lists tasks and nodes of runs, newest first. */
export const listTasks = defineRequest({
  subject: 'cmd.agent.task.list',
  request: z.strictObject({
    workspace: WorkspaceId,
    state: TaskState.optional(),
    agent: z.string().max(64).optional(),
    project: z.string().max(200).optional(),
    kind: TaskItem.shape.kind.optional(),
    capability: z.string().max(64).optional(),
    q: z.string().max(200).optional(),
    parent: z.uuid().optional(),
    /** Selects tasks that another task tries again, or those that none does. */
    retried: z.boolean().optional(),
    /** Also counts the tasks of the filter by state. */
    counts: z.boolean().optional(),
    limit: z.int().min(1).max(500).default(100),
    cursor: z.string().max(500).optional(),
    /** Number of matching tasks to skip, after the cursor. */
    offset: z.int().min(0).max(100_000).default(0),
    ...asOfRequest,
  }),
  reply: z.object({
    tasks: z.array(TaskItem),
    nextCursor: z.string().nullable(),
    counts: z
      .record(TaskState, z.int().nonnegative())
      .optional()
      .describe('Number of tasks by state, with `counts=true` and not for the key of an agent.'),
    failedAndNotRetried: z
      .int()
      .nonnegative()
      .optional()
      .describe('Number of failed tasks that no other task tries again. There with `counts`.'),
    ...asOfReply,
  }),
  timeoutMs: 15_000,
});

export const cancelTask = defineRequest({
  subject: 'cmd.agent.task.cancel',
  request: z.strictObject({ ...target, reason: z.string().min(1).max(2_000).optional(), actor: AgentActor }),
  reply: z.object({ task: TaskItem }),
  timeoutMs: 10_000,
});

/** Claim of a task by an external worker. */
export const TaskClaim = z.object({
  task: TaskItem,
  prompt: z.string(),
  epoch: z.int().positive().describe('Send it with each renewal and with the result.'),
  leaseMs: z.int().positive().describe('Renew the claim before this time is over.'),
});

/**
 * Claims the next external task that the worker can do; `claim` is null if there is none. A request
 * that is repeated with its idempotency key gets the same claim, or `TASK.CLAIM_LOST` (conflict) if
 * that one has ended. Null is not remembered.
 */
export const claimTask = defineRequest({
  subject: 'cmd.agent.task.claim',
  request: z.strictObject({
    workspace: WorkspaceId,
    capabilities: z.array(z.string().min(1).max(64)).max(64).default([]),
    actor: AgentActor,
    idempotencyKey: IdempotencyKey.optional(),
  }),
  reply: z.object({ claim: TaskClaim.nullable() }),
  timeoutMs: 5_000,
});

/** Renews a claim. Error: `TASK.CLAIM_LOST` (conflict) if the claim has ended. */
export const renewTask = defineRequest({
  subject: 'cmd.agent.task.renew',
  request: z.strictObject({ ...target, epoch: z.int().positive(), actor: AgentActor }),
  reply: z.object({ leaseMs: z.int().positive() }),
  timeoutMs: 5_000,
});

/**
 * Ends a claim: `completed` with a result, `failed` (a strike), or `released` (no strike). A result
 * of an older claim gets `TASK.CLAIM_LOST`, and stays in the log as `TaskResultRefused`.
 */
export const finishTask = defineRequest({
  subject: 'cmd.agent.task.finish',
  request: z.strictObject({
    ...target,
    epoch: z.int().positive(),
    outcome: z.enum(['completed', 'failed', 'released']),
    text: z.string().max(65_536).default(''),
    code: z.string().max(200).optional(),
    actor: AgentActor,
  }),
  reply: z.object({ task: TaskItem }),
  timeoutMs: 10_000,
});
