import { TaskItem, TaskSpec, claimTask, listTasks, renewTask } from '../agent/task-requests.js';
import {
  ByTaskId,
  TaskClaimBody,
  TaskFinishBody,
  TaskPatchBody,
  TaskRenewBody,
  TasksQuery,
  AtQuery,
} from '../gateway/index.js';
import { EXTERNAL_TASK, TASK } from './agent-examples.js';
import { z } from 'zod';
import { asOfReply } from '../log/as-of.js';
import { defineRoute } from './http-route.js';

/** Tasks to cancel: those of an agent or a project, or all that a caller may cancel. */
export const CancelTasksBody = z.strictObject({
  agent: TasksQuery.shape.agent,
  project: TasksQuery.shape.project,
  reason: TaskPatchBody.shape.reason,
  cursor: z
    .string()
    .regex(/^[0-2]\./, 'is no cursor of this route')
    .max(510)
    .optional()
    .describe('`nextCursor` of the request before.'),
});
export const CancelledTasks = z.object({
  cancelled: z.array(z.string()).describe('Ids of the tasks that were cancelled or are cancelling.'),
  nextCursor: z
    .string()
    .nullable()
    .describe('Cursor of the next tasks, null after the last. A page may be empty.'),
});

const TASK_ID = { id: TASK.id };
const NO_TASK = { 404: 'there is no task with this id in the workspace' };
const LOST = { 409: '`TASK.CLAIM_LOST`: the claim has ended, and another worker may have the task' };

/** Routes of `/api/v1/tasks`. */
export const TASK_ROUTES = {
  listTasks: defineRoute({
    method: 'get',
    path: '/api/v1/tasks',
    access: 'runs:read',
    tag: 'Tasks',
    feature: 'agent_runtime_v1',
    summary: 'List tasks',
    description:
      'Returns tasks and the nodes of runs, newest first. `waiting` says why a queued task waits now, and ' +
      '`counts=true` counts the tasks of the filter by state.',
    query: TasksQuery,
    reply: { schema: listTasks.reply },
    example: {
      query: { state: 'running', project: 'website' },
      reply: { tasks: [TASK], nextCursor: null },
    },
  }),
  createTask: defineRoute({
    method: 'post',
    path: '/api/v1/tasks',
    access: 'runs:write',
    tag: 'Tasks',
    feature: 'agent_runtime_v1',
    summary: 'Create a task',
    description:
      'Accepts a task. It waits in the queue until an idle agent has its capabilities, or until an external worker ' +
      'claims it. A failed attempt is retried up to `retry.strikes` times. `retryOf` names an ended task that it tries again.',
    body: TaskSpec,
    idempotent: true,
    reply: { schema: TaskItem, status: 201 },
    example: {
      body: { prompt: 'Collect facts about tide tables.', capabilities: ['research'], priority: 3 },
      reply: { ...TASK, state: 'queued', worker: null, agentId: null, epoch: 0, startedAt: null },
    },
    problems: {
      400: 'the task is invalid; `detail` names the field',
      404: 'there is no such agent, or no task `retryOf`',
      409: 'the `Idempotency-Key` was used for another request',
      422: '`TASK.NOT_ENDED`: the task `retryOf` has not ended',
      429: '`TASK.QUEUE_FULL`: the queue is full; `Retry-After` gives the seconds to wait',
    },
  }),
  getTask: defineRoute({
    method: 'get',
    path: '/api/v1/tasks/{id}',
    access: 'runs:read',
    tag: 'Tasks',
    feature: 'agent_runtime_v1',
    summary: 'Get a task',
    description: 'Returns one task with its state, its claim and its result.',
    params: ByTaskId,
    query: AtQuery,
    reply: { schema: TaskItem.extend(asOfReply) },
    example: { params: TASK_ID, reply: TASK },
    problems: NO_TASK,
  }),
  cancelTask: defineRoute({
    method: 'patch',
    path: '/api/v1/tasks/{id}',
    access: 'runs:write',
    tag: 'Tasks',
    feature: 'agent_runtime_v1',
    summary: 'Cancel a task',
    description:
      'Cancels a task and the turn that works on it. A repeated request, and one for a task that has ended, changes ' +
      'nothing and returns the task. A node of a run is cancelled with its run.',
    params: ByTaskId,
    body: TaskPatchBody,
    reply: { schema: TaskItem },
    example: {
      params: TASK_ID,
      body: { action: 'cancel', reason: 'not needed any more' },
      reply: { ...TASK, state: 'cancelled', endedAt: '2026-11-22T10:22:00.000Z' },
    },
    problems: { ...NO_TASK, 422: 'the task is a node of a run' },
  }),
  cancelTasks: defineRoute({
    method: 'post',
    path: '/api/v1/tasks/cancel',
    access: 'runs:write',
    tag: 'Tasks',
    feature: 'agent_runtime_v1',
    summary: 'Cancel all open tasks',
    description:
      'Cancels up to 100 tasks that have not ended, and the turns that work on them: those of `agent`, of `project`, or ' +
      'all of the workspace. Nodes of runs, and tasks that the caller may not cancel, are left out. Repeat the request ' +
      'with `nextCursor` until it is null.',
    body: CancelTasksBody,
    reply: { schema: CancelledTasks },
    example: {
      body: { project: 'website', reason: 'the project has ended' },
      reply: { cancelled: [TASK.id], nextCursor: null },
    },
  }),
  claimTask: defineRoute({
    method: 'post',
    path: '/api/v1/tasks/claim',
    access: 'runs:write',
    tag: 'Tasks',
    feature: 'workers_v1',
    summary: 'Claim a task as an external worker',
    description:
      'Claims the next task with `worker: "external"` that the capabilities cover. `claim` is null if there is none. ' +
      'Renew the claim before `leaseMs` is over, and end it with its result. A request that is repeated with its key ' +
      'gets the same claim. An answer without a claim changes nothing, so that its key may claim later.',
    body: TaskClaimBody,
    idempotent: true,
    reply: { schema: claimTask.reply },
    example: {
      body: { capabilities: ['research'] },
      reply: {
        claim: { task: EXTERNAL_TASK, prompt: 'Collect facts about tide tables.', epoch: 1, leaseMs: 30_000 },
      },
    },
    problems: {
      409: 'the `Idempotency-Key` was used for another request, or `TASK.CLAIM_LOST`: its claim has ended',
    },
  }),
  renewTask: defineRoute({
    method: 'post',
    path: '/api/v1/tasks/{id}/renew',
    access: 'runs:write',
    tag: 'Tasks',
    feature: 'workers_v1',
    summary: 'Renew a claim',
    description: 'Extends the claim of an external worker by `leaseMs`. Repeating it is harmless.',
    params: ByTaskId,
    body: TaskRenewBody,
    reply: { schema: renewTask.reply },
    example: { params: TASK_ID, body: { epoch: 1 }, reply: { leaseMs: 30_000 } },
    problems: { ...NO_TASK, ...LOST },
  }),
  finishTask: defineRoute({
    method: 'post',
    path: '/api/v1/tasks/{id}/finish',
    access: 'runs:write',
    tag: 'Tasks',
    feature: 'workers_v1',
    summary: 'End a claim',
    description:
      'Ends the claim of an external worker with a result, a failure or a release. A result of an older claim is ' +
      'refused, and stays in the log as evidence.',
    params: ByTaskId,
    body: TaskFinishBody,
    reply: { schema: TaskItem },
    example: {
      params: TASK_ID,
      body: { epoch: 1, outcome: 'completed', text: 'Tide tables list times of high water.' },
      reply: { ...EXTERNAL_TASK, state: 'completed', endedAt: '2026-11-22T10:22:00.000Z' },
    },
    problems: { ...NO_TASK, ...LOST },
  }),
} as const;
