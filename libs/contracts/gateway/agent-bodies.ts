import { z } from 'zod';
import { AgentChanges, AgentSpec, AgentState } from '../agent/agent-definition.js';
import { AgentId } from '../agent/agent-id.js';
import { AGENT_ACTIONS, MAX_CHARTED_AGENTS, SampleStep } from '../agent/agent-requests.js';
import { Topic } from '../agent/message-events.js';
import { MessageFilter, MessageSpec } from '../agent/message-requests.js';
import { IdempotencyKey } from '../agent/requests.js';
import { TaskState } from '../agent/task-events.js';
import { TaskItem } from '../agent/task-requests.js';
import { USAGE_GROUPS, WORKSPACE_SCOPES } from '../metering/index.js';
import { At } from './at.js';
import { TaskSpec, claimTask, finishTask, renewTask } from '../agent/task-requests.js';

const Cursor = z.string().max(500).optional().describe('`nextCursor` of the page before.');
const pageLimit = (max: number, preset: number) =>
  z.coerce.number().int().min(1).max(max).default(preset).describe('Maximum number of items.');
const Offset = z.coerce
  .number()
  .int()
  .min(0)
  .max(100_000)
  .optional()
  .describe('Number of items to skip after the cursor. A cursor is cheaper in a long list.');
const Reason = z.string().min(1).max(2_000).optional().describe('Why, for a person; the history shows it.');
const Project = z.string().min(1).max(200);
const idempotency = { idempotencyKey: IdempotencyKey.optional() };

/** Path parameter `id` of an agent. */
export const ByAgentId = z.object({ id: AgentId });
/** Path parameters of an agent's subscription. A slash of the topic is escaped as `%2F`. */
export const ByTopic = z.object({ id: AgentId, topic: Topic.describe('Name of the topic.') });
/** Path parameter `id` of a task. */
export const ByTaskId = z.object({
  id: z
    .string()
    .regex(
      /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(\/[A-Za-z0-9_.-]{1,100})?$/i,
      'the id must be a UUID, or `<runId>%2F<nodeId>`',
    )
    .describe(
      'Id of the task. The id `<runId>/<nodeId>` of a run’s node is escaped as `<runId>%2F<nodeId>`.',
    ),
});

const agentFilters = {
  state: AgentState.optional().describe('Terminated agents are listed only with `terminated`.'),
  project: Project.optional(),
  parent: AgentId.optional().describe('Only children of this agent.'),
  capability: z.string().min(1).max(64).optional().describe('Only agents with this capability.'),
  model: z.string().min(1).max(200).optional().describe('Only agents of this model.'),
  q: z.string().min(1).max(200).optional().describe('Part of the id, name, role or project.'),
};
/** Query of `GET /api/v1/agents`. */
export const AgentsQuery = z.strictObject({
  ...agentFilters,
  limit: pageLimit(1_000, 1_000),
  cursor: Cursor,
  offset: Offset,
  at: At,
});
/** Params of `agent.list`. */
export const AgentListParams = AgentsQuery;
/** Body of `PATCH /api/v1/agents/{id}`: a change of its state, or of its definition. */
export const AgentPatchBody = z.union([
  z.strictObject({ action: z.enum(['pause', 'resume']), reason: Reason }),
  AgentChanges.extend({ reason: Reason }).refine(
    ({ reason: _reason, ...changes }) => Object.values(changes).some((value) => value !== undefined),
    'names no field to change, and no action',
  ),
]);
/** Query of `DELETE /api/v1/agents/{id}`. */
export const TerminateQuery = z.strictObject({ reason: Reason });
/** Query of `GET /api/v1/usage`. */
export const UsageQuery = z.strictObject({
  agent: AgentId.optional().describe('Only this agent.'),
  tree: AgentId.optional().describe('Only the tree of this root.'),
  by: z.enum(USAGE_GROUPS).optional().describe('Sums by agent (the default), model, key or day.'),
  day: z.iso.date().optional().describe('Only calls of this UTC day.'),
  at: At,
});
/** Body of `PUT /api/v1/budgets/agents/{id}`. */
export const BudgetLimitBody = z.strictObject({
  limitTokens: z.int().nonnegative().nullable().describe('Null for no limit of tokens.'),
  limitMicroUsd: z.int().nonnegative().nullable().describe('Micro-USD; null for no limit of money.'),
});
/** Params of the budgets of a workspace. */
export const ByBudgetScope = z.strictObject({
  scope: z.enum(WORKSPACE_SCOPES).describe('Each session, each day or each month.'),
});
/** Query of `GET /api/v1/budgets`. */
export const BudgetsQuery = z.strictObject({
  session: z.uuid().optional().describe('Adds the budget of this session.'),
  agent: AgentId.optional().describe('Adds the budget of this agent, if it has a limit.'),
  agents: z.stringbool().optional().describe('Adds the budgets of all agents with a limit; at most 500.'),
  at: At,
});
/** Query of an agent's history. */
export const HistoryQuery = z.strictObject({ limit: pageLimit(1_000, 100), cursor: Cursor, at: At });
/** Query of an agent's metrics. */
export const MetricsQuery = z.strictObject({
  limit: pageLimit(2_880, 120),
  step: SampleStep.default(30).describe(
    'Seconds of each sample: sums of time, traffic, turns, calls and tokens, and the most memory and disk.',
  ),
  at: At,
});
const AgentIds = z.array(AgentId).min(1).max(MAX_CHARTED_AGENTS);
const minutes = z.coerce
  .number()
  .int()
  .min(0)
  .max(60)
  .default(0)
  .describe('Samples of the last minutes; only with `agents`.');
/** Query of the metrics of all agents. */
export const AgentMetricsQuery = z.strictObject({
  agents: z
    .string()
    .max(MAX_CHARTED_AGENTS * 65)
    .transform((text) => text.split(','))
    .pipe(AgentIds)
    .optional()
    .describe(`Ids, separated by commas; at most ${MAX_CHARTED_AGENTS}. Default: all that live.`),
  minutes,
  limit: pageLimit(1_000, 1_000),
  cursor: Cursor,
  at: At,
});
/** Params of `agent.metrics`. */
export const AgentMetricsParams = AgentMetricsQuery.extend({ agents: AgentIds.optional() });
/** Params of `agent.status`. */
export const AgentParams = z.strictObject({ agentId: AgentId });
/** Params of `agent.control`. */
export const AgentControlParams = z.strictObject({
  agentId: AgentId,
  action: z.enum(AGENT_ACTIONS),
  reason: Reason,
});
/** Params of `agent.spawn`. */
export const AgentSpawnParams = AgentSpec.extend(idempotency);

/** Query of `GET /api/v1/tasks`. */
export const TasksQuery = z.strictObject({
  state: TaskState.optional(),
  agent: AgentId.optional().describe('Only tasks that this agent has or must do.'),
  project: Project.optional(),
  kind: TaskItem.shape.kind.optional().describe('`task` of the queue, or `run_node` of a run.'),
  capability: z.string().max(64).optional().describe('Only tasks that need this capability.'),
  q: z.string().max(200).optional().describe('Text that the title has, without regard to case.'),
  parent: z.uuid().optional().describe('Only tasks of this parent task.'),
  retried: z
    .enum(['true', 'false'])
    .optional()
    .describe('`true`: only tasks that another task tries again. `false`: only those that none does.'),
  counts: z.enum(['true', 'false']).optional().describe('`true` also counts the tasks by state.'),
  limit: pageLimit(500, 100),
  cursor: Cursor,
  offset: z.coerce
    .number()
    .int()
    .min(0)
    .max(100_000)
    .optional()
    .describe('Number of matching tasks to skip. A cursor is cheaper on a long list.'),
  at: At,
});
/** Body of `PATCH /api/v1/tasks/{id}`. */
export const TaskPatchBody = z.strictObject({ action: z.literal('cancel'), reason: Reason });
/** Body of `POST /api/v1/tasks/claim`. */
export const TaskClaimBody = z.preprocess(
  (body) => body ?? {},
  z.strictObject({
    capabilities: claimTask.request.shape.capabilities.describe('Capabilities of the worker.'),
  }),
);
/** Body of `POST /api/v1/tasks/{id}/renew`. */
export const TaskRenewBody = z.strictObject({
  epoch: renewTask.request.shape.epoch.describe('`epoch` of the claim.'),
});
const { epoch, outcome, text, code } = finishTask.request.shape;
/** Body of `POST /api/v1/tasks/{id}/finish`. */
export const TaskFinishBody = z.strictObject({
  epoch: epoch.describe('`epoch` of the claim.'),
  outcome: outcome.describe('`failed` counts as a strike; `released` gives the task back without one.'),
  text: text.describe('Result, or the message of the failure.'),
  code: code.describe('Error code of a failure.'),
});
/** Params of `task.create`. */
export const TaskCreateParams = TaskSpec.extend(idempotency);
/** Params of `task.get`. */
export const TaskParams = z.strictObject({ taskId: ByTaskId.shape.id });
/** Params of `task.cancel`. */
export const TaskCancelParams = TaskParams.extend({ reason: Reason });

/** Body of `POST /api/v1/agents/{id}/messages`. */
export const AgentMessageBody = MessageSpec.omit({ to: true });
/** Query of `GET /api/v1/agents/{id}/messages`. */
export const MessagesQuery = z.strictObject({
  limit: pageLimit(500, 100),
  cursor: Cursor,
  offset: Offset,
  at: At,
});
/** Query of `GET /api/v1/messages`. */
export const WorkspaceMessagesQuery = z.strictObject({
  ...MessageFilter,
  limit: pageLimit(500, 100),
  cursor: Cursor,
  at: At,
});
/** Params of `message.send`. */
export const MessageSendParams = MessageSpec.extend(idempotency);
const MemoryFilter = {
  query: z
    .string()
    .min(1)
    .max(1_000)
    .optional()
    .describe('Words to search for. Entries that share none are left out.'),
  detail: z.enum(['summary', 'full']).default('summary').describe('`full` adds the message of each entry.'),
  at: z.coerce.number().int().nonnegative().optional().describe('Position of the log. Default: now.'),
};
/** Query of `GET /api/v1/memory`. */
export const MemoryQuery = z
  .strictObject({
    ...MemoryFilter,
    session: z.uuid().optional().describe('Entries of the key of this session.'),
    agent: AgentId.optional().describe('Entries of all sessions of this agent.'),
    superseded: z.stringbool().default(false).describe('Adds entries that newer ones replaced.'),
    limit: pageLimit(100, 20),
  })
  .refine(({ session, agent }) => (session === undefined) !== (agent === undefined), {
    message: 'name either `session` or `agent`',
  });
/** Params of `memory.query`. */
export const MemoryQueryParams = z
  .strictObject({
    ...MemoryFilter,
    sessionId: z.uuid().optional().describe('Entries of the key of this session.'),
    agent: AgentId.optional().describe('Entries of all sessions of this agent.'),
    superseded: z.boolean().default(false).describe('Adds entries that newer ones replaced.'),
    limit: z.int().min(1).max(100).default(20),
  })
  .refine(({ sessionId, agent }) => (sessionId === undefined) !== (agent === undefined), {
    message: 'name either `sessionId` or `agent`',
  });
/** Params of `memory.recall`. */
export const MemoryRecallParams = z.strictObject({ memoryId: z.uuid() });
/** Parameters of `/api/v1/memory/{memoryId}`. */
export const MemoryParams = MemoryRecallParams;
/** Query of `GET /api/v1/memory/{memoryId}/turns`. */
export const EntryTurnsQuery = z.strictObject({ limit: pageLimit(50, 20), cursor: Cursor, at: At });
