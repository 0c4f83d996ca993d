import { z } from 'zod';
import { asOfReply, asOfRequest } from '../log/as-of.js';
import { WorkspaceId } from '../log/index.js';
import { defineRequest } from '../messaging/index.js';
import { AgentId } from './agent-id.js';
import { AgentActor } from './agent-requests.js';
import { FileDigest } from './file-events.js';
import { PLAN_SUFFIX, PlanConflict, PlanEvidence, PlanStepId } from './plan-events.js';

/** Maximum number of turns of one run, unless the request gives another one. */
export const DEFAULT_PLAN_TURNS = 50;

/** Path of a plan's file. */
export const PlanPath = z
  .string()
  .min(PLAN_SUFFIX.length + 1)
  .max(1_024)
  .endsWith(PLAN_SUFFIX)
  .describe('Path of the plan’s file, such as `release.plan.md`.');

/** A plan after its file was read. */
export const PlanView = z.object({
  planId: z.uuid(),
  path: z.string(),
  status: z
    .enum(['invalid', 'open', 'running', 'failed', 'done'])
    .describe('`invalid`: the file has no step at the top level, or is too large.'),
  digest: z.string().nullable().describe('SHA-256 of the file; null for a removed file.'),
  steps: z.array(
    z.object({
      stepId: PlanStepId,
      text: z.string(),
      body: z.string(),
      status: z.enum(['open', 'started', 'done', 'failed']),
      evidence: PlanEvidence.nullable(),
      note: z.string().nullable(),
      code: z.string().nullable(),
    }),
  ),
  conflicts: z.array(PlanConflict).describe('Parts of the last conflicting edit; the facts stayed.'),
  conflictedAt: z.iso.datetime().nullable(),
  run: z
    .object({
      runId: z.uuid(),
      agentId: z.string(),
      turns: z.int().nonnegative(),
      maxTurns: z.int().positive(),
      ended: z.object({ reason: z.string(), message: z.string().nullable() }).nullable(),
    })
    .nullable(),
});
export type PlanView = z.infer<typeof PlanView>;

/** A plan as lists have it. */
export const PlanItem = z.object({
  path: z.string(),
  planId: z.uuid().nullable().describe('Null for a file that is no plan yet.'),
  status: PlanView.shape.status,
  done: z.int().nonnegative().describe('Number of completed steps.'),
  failed: z.int().nonnegative(),
  steps: z.int().nonnegative(),
  conflicts: z.int().nonnegative().describe('Number of conflicts of the last edit.'),
  agentId: z.string().nullable().describe('Agent that does its steps now; null for none.'),
  changedAt: z.iso.datetime().describe('Time of the last change of its file.'),
  changedBy: z.string(),
});
export type PlanItem = z.infer<typeof PlanItem>;

/** Lists the plans of a workspace by the paths of their files. Records nothing. */
export const listPlans = defineRequest({
  subject: 'cmd.agent.plan.list',
  request: z.strictObject({
    workspace: WorkspaceId,
    limit: z.int().min(1).max(100).default(50),
    cursor: z.string().max(500).optional(),
    ...asOfRequest,
  }),
  reply: z.object({
    plans: z.array(PlanItem),
    total: z.int().nonnegative().describe('Number of plans of all pages.'),
    nextCursor: z.string().nullable(),
    ...asOfReply,
  }),
  timeoutMs: 15_000,
});

const place = { workspace: WorkspaceId, path: PlanPath };

/**
 * Reads a plan. With `takesEdits` an edit of its file becomes facts first, except for a read of the
 * past. Without it the edit is shown, and nothing is recorded. Errors:
 * `PLAN.NOT_FOUND`, `PLAN.NO_STEPS`, `PLAN.TOO_LARGE`.
 */
export const getPlan = defineRequest({
  subject: 'cmd.agent.plan.get',
  request: z.strictObject({ ...place, ...asOfRequest, takesEdits: z.boolean().optional() }),
  reply: z.object({ plan: PlanView, ...asOfReply }),
  timeoutMs: 10_000,
});

/**
 * Starts a run: an agent does the open steps, one turn each. Returns at once. Errors also:
 * `PLAN.RUNNING`, `PLAN.DONE`, `PLAN.NO_TOOL`, `AGENT.NOT_FOUND`.
 */
export const runPlan = defineRequest({
  subject: 'cmd.agent.plan.run',
  request: z.strictObject({
    ...place,
    agent: AgentId,
    maxTurns: z.int().min(1).max(1_000).default(DEFAULT_PLAN_TURNS),
    actor: AgentActor,
  }),
  reply: z.object({ plan: PlanView }),
  timeoutMs: 10_000,
});

/** Stops the run of a plan and cancels its turn. Without a run it changes nothing. */
export const stopPlan = defineRequest({
  subject: 'cmd.agent.plan.stop',
  request: z.strictObject({ ...place, actor: AgentActor }),
  reply: z.object({ plan: PlanView }),
  timeoutMs: 10_000,
});

/**
 * Settles the conflicts of a plan by its facts: its file shows them, instead of the edit that the
 * caller saw by its digest. The edit stays in the history of the file. Without conflicts and with
 * an equal file it changes nothing. Errors: `PLAN.NOT_FOUND`, `FILE.STALE`.
 */
export const takePlanFacts = defineRequest({
  subject: 'cmd.agent.plan.facts',
  request: z.strictObject({
    ...place,
    digest: FileDigest.nullable().describe(
      'Digest of the file that the caller saw; null for a removed file.',
    ),
    actor: AgentActor,
  }),
  reply: z.object({ plan: PlanView }),
  timeoutMs: 10_000,
});
