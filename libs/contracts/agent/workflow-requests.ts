import { z } from 'zod';
import { WorkspaceId } from '../log/index.js';
import { defineRequest } from '../messaging/index.js';
import { Caller, IdempotencyKey } from './requests.js';
import { RunInputs, WorkflowDefinition, WORKFLOW_LIMITS } from './workflow-definition.js';

/** A definition as a user wrote it: YAML or JSON text, or the JSON itself; the agent service reads and checks it. */
export const WorkflowSource = z.union([
  z.string().min(1).max(WORKFLOW_LIMITS.sourceLength),
  z.record(z.string(), z.json()),
]);
export type WorkflowSource = z.infer<typeof WorkflowSource>;

export const WORKFLOW_STATES = ['draft', 'validating', 'ready', 'running', 'completed', 'failed'] as const;
export const RUN_STATES = ['running', 'cancelling', 'completed', 'failed', 'cancelled'] as const;
export const TASK_STATES = [
  'waiting',
  'ready',
  'running',
  'completed',
  'failed',
  'skipped',
  'cancelled',
] as const;

export const WorkflowProblem = z.object({ code: z.string(), message: z.string() });

export const WorkflowSummary = z.object({
  id: z.uuid(),
  name: z.string(),
  status: z.enum(WORKFLOW_STATES),
  version: z.int().positive(),
  nodes: z.int(),
  updatedAt: z.iso.datetime(),
});
export type WorkflowSummary = z.infer<typeof WorkflowSummary>;

export const WorkflowView = WorkflowSummary.extend({
  definition: WorkflowDefinition,
  /** One in which its nodes can run; empty while it is a draft. */
  order: z.array(z.string()),
  /** Why it is a draft still. */
  problem: WorkflowProblem.nullable(),
  lastRunId: z.uuid().nullable(),
});
export type WorkflowView = z.infer<typeof WorkflowView>;

export const TaskView = z.object({
  id: z.string(),
  agent: z.string(),
  needs: z.array(z.string()),
  status: z.enum(TASK_STATES),
  /** Turns begun for it so far. */
  attempt: z.int().nonnegative(),
  sessionId: z.uuid().nullable(),
  turnId: z.uuid().nullable(),
  /** Its beginning, where it is longer than a view holds; the log has all of it. */
  output: z.string().nullable(),
  outputTruncated: z.boolean(),
  error: WorkflowProblem.nullable(),
  startedAt: z.iso.datetime().nullable(),
  endedAt: z.iso.datetime().nullable(),
});
export type TaskView = z.infer<typeof TaskView>;

export const RunSummary = z.object({
  id: z.uuid(),
  workflowId: z.uuid().nullable(),
  name: z.string(),
  status: z.enum(RUN_STATES),
  startedAt: z.iso.datetime(),
  endedAt: z.iso.datetime().nullable(),
});
export type RunSummary = z.infer<typeof RunSummary>;

export const RunView = RunSummary.extend({
  workflowVersion: z.int().positive().nullable(),
  inputs: RunInputs,
  tasks: z.array(TaskView),
});
export type RunView = z.infer<typeof RunView>;

const Asked = { workspace: WorkspaceId, caller: Caller };
const Page = { limit: z.int().min(1).max(200).default(50), cursor: z.string().max(200).optional() };

/**
 * Keeps a definition and validates it: a new workflow without `workflowId`, else its next version. A definition that
 * cannot run is refused, unless it is meant as a draft. Codes: `WORKFLOW.INVALID`, `WORKFLOW.CYCLE`, … (docs/errors.md).
 */
export const saveWorkflow = defineRequest({
  subject: 'cmd.agent.workflow.save',
  request: z.strictObject({
    ...Asked,
    workflowId: z.uuid().optional(),
    source: WorkflowSource,
    draft: z.boolean().default(false),
    idempotencyKey: IdempotencyKey.optional(),
  }),
  reply: WorkflowView,
  timeoutMs: 10_000,
});
export const validateWorkflow = defineRequest({
  subject: 'cmd.agent.workflow.validate',
  request: z.strictObject({ ...Asked, workflowId: z.uuid() }),
  reply: WorkflowView,
  timeoutMs: 10_000,
});
export const deleteWorkflow = defineRequest({
  subject: 'cmd.agent.workflow.delete',
  request: z.strictObject({ ...Asked, workflowId: z.uuid() }),
  reply: z.object({ deleted: z.boolean() }),
  timeoutMs: 10_000,
});
export const getWorkflow = defineRequest({
  subject: 'cmd.agent.workflow.get',
  request: z.strictObject({ workspace: WorkspaceId, workflowId: z.uuid() }),
  reply: WorkflowView,
  timeoutMs: 5_000,
});
export const listWorkflows = defineRequest({
  subject: 'cmd.agent.workflow.list',
  request: z.strictObject({ workspace: WorkspaceId, ...Page }),
  reply: z.object({ workflows: z.array(WorkflowSummary), nextCursor: z.string().nullable() }),
  timeoutMs: 5_000,
});

/** Answered once `RunStarted` is committed; Temporal is told afterwards, by this process or by the reconciler. */
export const startRun = defineRequest({
  subject: 'cmd.agent.run.start',
  request: z.strictObject({
    ...Asked,
    what: z.union([z.strictObject({ workflowId: z.uuid() }), z.strictObject({ source: WorkflowSource })]),
    inputs: RunInputs.default({}),
    idempotencyKey: IdempotencyKey.optional(),
  }),
  reply: z.object({ runId: z.uuid(), joined: z.boolean() }),
  timeoutMs: 10_000,
});
export const cancelRun = defineRequest({
  subject: 'cmd.agent.run.cancel',
  request: z.strictObject({ ...Asked, runId: z.uuid() }),
  reply: z.object({ cancelled: z.boolean(), status: z.enum(RUN_STATES) }),
  timeoutMs: 10_000,
});
export const getRun = defineRequest({
  subject: 'cmd.agent.run.get',
  request: z.strictObject({ workspace: WorkspaceId, runId: z.uuid() }),
  reply: RunView,
  timeoutMs: 5_000,
});
export const listRuns = defineRequest({
  subject: 'cmd.agent.run.list',
  request: z.strictObject({
    workspace: WorkspaceId,
    workflowId: z.uuid().optional(),
    status: z.enum(RUN_STATES).optional(),
    ...Page,
  }),
  reply: z.object({ runs: z.array(RunSummary), nextCursor: z.string().nullable() }),
  timeoutMs: 5_000,
});
