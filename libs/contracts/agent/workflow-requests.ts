import { z } from 'zod';
import { asOfReply, asOfRequest } from '../log/as-of.js';
import { WorkspaceId } from '../log/index.js';
import { defineRequest } from '../messaging/index.js';
import { Caller, IdempotencyKey } from './requests.js';
import { RunInputs, WorkflowDefinition, WORKFLOW_LIMITS } from './workflow-definition.js';

/**
 * A definition as the user wrote it: YAML text, JSON text or a JSON object. The agent service
 * parses and checks it.
 */
export const WorkflowSource = z.union([
  z.string().min(1).max(WORKFLOW_LIMITS.sourceLength),
  z.record(z.string(), z.json()),
]);
export type WorkflowSource = z.infer<typeof WorkflowSource>;

export const WORKFLOW_STATES = ['draft', 'validating', 'ready', 'running', 'completed', 'failed'] as const;
export const RUN_STATES = ['running', 'cancelling', 'completed', 'failed', 'cancelled'] as const;
export const NODE_STATES = [
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
  version: z.int().positive().describe('Number of the definition, from 1. Each save adds one.'),
  nodes: z.int().describe('Number of nodes.'),
  updatedAt: z.iso.datetime(),
});
export type WorkflowSummary = z.infer<typeof WorkflowSummary>;

export const WorkflowView = WorkflowSummary.extend({
  definition: WorkflowDefinition,
  order: z.array(z.string()).describe('One valid order of the nodes; empty for a draft.'),
  problem: WorkflowProblem.nullable().describe(
    'Reason why the definition is still a draft; null for a valid one.',
  ),
  lastRunId: z.uuid().nullable(),
});
export type WorkflowView = z.infer<typeof WorkflowView>;

export const RunNodeView = z.object({
  id: z.string(),
  agent: z.string(),
  needs: z.array(z.string()),
  status: z.enum(NODE_STATES),
  attempt: z.int().nonnegative().describe('Number of turns started for the task so far.'),
  sessionId: z.uuid().nullable().describe('Session of the last turn of the task.'),
  turnId: z.uuid().nullable(),
  output: z
    .string()
    .nullable()
    .describe('Last answer of the turn; cut if `outputTruncated`. The log has all of it.'),
  outputTruncated: z.boolean(),
  error: WorkflowProblem.nullable(),
  startedAt: z.iso.datetime().nullable(),
  endedAt: z.iso.datetime().nullable(),
});
export type RunNodeView = z.infer<typeof RunNodeView>;

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
  tasks: z.array(RunNodeView),
});
export type RunView = z.infer<typeof RunView>;

const Common = { workspace: WorkspaceId, caller: Caller };
const Page = { limit: z.int().min(1).max(200).default(50), cursor: z.string().max(200).optional() };
const NextCursor = z
  .string()
  .nullable()
  .describe('Pass it as `cursor` for the next page; null on the last page.');

/**
 * Saves and validates a definition: a new workflow, or the next version of `workflowId`. Rejects an
 * invalid definition unless `draft` is true. Codes: `WORKFLOW.INVALID`, `WORKFLOW.CYCLE`,
 * `WORKFLOW.VERSION_CONFLICT` (data has the current version) and others (docs/errors.md).
 */
export const saveWorkflow = defineRequest({
  subject: 'cmd.agent.workflow.save',
  request: z.strictObject({
    ...Common,
    workflowId: z.uuid().optional(),
    source: WorkflowSource,
    draft: z.boolean().default(false),
    version: z
      .int()
      .positive()
      .optional()
      .describe('Version that the caller edited. Another current one rejects the request.'),
    idempotencyKey: IdempotencyKey.optional(),
  }),
  reply: WorkflowView,
  timeoutMs: 10_000,
});
/** Validates a draft again. */
export const validateWorkflow = defineRequest({
  subject: 'cmd.agent.workflow.validate',
  request: z.strictObject({ ...Common, workflowId: z.uuid() }),
  reply: WorkflowView,
  timeoutMs: 10_000,
});
/** Deletes a workflow. Its runs stay readable. */
export const deleteWorkflow = defineRequest({
  subject: 'cmd.agent.workflow.delete',
  request: z.strictObject({ ...Common, workflowId: z.uuid() }),
  reply: z.object({ deleted: z.boolean() }),
  timeoutMs: 10_000,
});
/** Returns one workflow with its definition. */
export const getWorkflow = defineRequest({
  subject: 'cmd.agent.workflow.get',
  request: z.strictObject({ workspace: WorkspaceId, workflowId: z.uuid(), ...asOfRequest }),
  reply: WorkflowView.extend(asOfReply),
  timeoutMs: 15_000,
});
/** Lists the saved workflows. */
export const listWorkflows = defineRequest({
  subject: 'cmd.agent.workflow.list',
  request: z.strictObject({ workspace: WorkspaceId, ...Page, ...asOfRequest }),
  reply: z.object({ workflows: z.array(WorkflowSummary), nextCursor: NextCursor, ...asOfReply }),
  timeoutMs: 15_000,
});

/**
 * Starts a run. Replies once `RunStarted` is committed; this process or the reconciler then starts
 * its Temporal workflow.
 */
export const startRun = defineRequest({
  subject: 'cmd.agent.run.start',
  request: z.strictObject({
    ...Common,
    what: z.union([z.strictObject({ workflowId: z.uuid() }), z.strictObject({ source: WorkflowSource })]),
    inputs: RunInputs.default({}),
    idempotencyKey: IdempotencyKey.optional(),
  }),
  reply: z.object({ runId: z.uuid(), joined: z.boolean() }),
  timeoutMs: 10_000,
});
/** Cancels a run and the open turns of its tasks. */
export const cancelRun = defineRequest({
  subject: 'cmd.agent.run.cancel',
  request: z.strictObject({ ...Common, runId: z.uuid() }),
  reply: z.object({ cancelled: z.boolean(), status: z.enum(RUN_STATES) }),
  timeoutMs: 10_000,
});
/** Returns one run with its tasks. */
export const getRun = defineRequest({
  subject: 'cmd.agent.run.get',
  request: z.strictObject({ workspace: WorkspaceId, runId: z.uuid(), ...asOfRequest }),
  reply: RunView.extend(asOfReply),
  timeoutMs: 15_000,
});
/** Lists runs, newest first. */
export const listRuns = defineRequest({
  subject: 'cmd.agent.run.list',
  request: z.strictObject({
    workspace: WorkspaceId,
    workflowId: z.uuid().optional(),
    status: z.enum(RUN_STATES).optional(),
    ...Page,
    ...asOfRequest,
  }),
  reply: z.object({ runs: z.array(RunSummary), nextCursor: NextCursor, ...asOfReply }),
  timeoutMs: 15_000,
});
