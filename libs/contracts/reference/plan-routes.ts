import { z } from 'zod';
import { AgentId } from '../agent/agent-id.js';
import { PlanPath, PlanView, listPlans, runPlan, takePlanFacts } from '../agent/plan-requests.js';
import { At } from '../gateway/index.js';
import { asOfReply } from '../log/as-of.js';
import { defineRoute } from './http-route.js';

const PLAN = {
  planId: '0198a2c4-7d1e-5a40-9b3c-2f6d8e1a4b70',
  path: 'release.plan.md',
  status: 'running',
  digest: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  steps: [
    {
      ...{ stepId: 's1', text: 'Collect the tide tables', body: '', status: 'done' },
      evidence: { kind: 'none', reason: 'the tables are in the answer' },
      ...{ note: 'twelve tables', code: null },
    },
    {
      ...{ stepId: 's2', text: 'Compare them', body: '', status: 'started' },
      ...{ evidence: null, note: null, code: null },
    },
  ],
  conflicts: [],
  conflictedAt: null,
  run: {
    runId: '01998f42-1b00-7c3d-8e9f-a0b1c2d3e4f5',
    agentId: 'main',
    turns: 2,
    maxTurns: 50,
    ended: null,
  },
} as const;

const INVALID = '`PLAN.NO_STEPS`: the file has no step at the top level';
const MISSING = 'there is no plan at this path';
const ByPath = z.strictObject({ path: PlanPath });

/** Routes of `/api/v1/plans`. */
export const PLAN_ROUTES = {
  listPlans: defineRoute({
    method: 'get',
    path: '/api/v1/plans/list',
    access: 'runs:read',
    tag: 'Plans',
    feature: 'agent_runtime_v1',
    summary: 'List plans',
    description:
      'Returns the plans of the workspace by the paths of their files, with the number of their steps and the agent ' +
      'that does them. Nothing is recorded: an edit of a file is shown as it would be read.',
    query: z.strictObject({
      limit: z.coerce.number().int().min(1).max(100).default(50),
      cursor: z.string().max(500).optional(),
      at: At,
    }),
    reply: { schema: listPlans.reply },
    example: {
      reply: {
        plans: [
          {
            ...{ path: PLAN.path, planId: PLAN.planId, status: 'running', done: 1, failed: 0, steps: 2 },
            ...{ conflicts: 0, agentId: 'main' },
            ...{ changedAt: '2026-11-21T09:30:00.125Z', changedBy: 'agent/main' },
          },
        ],
        total: 1,
        nextCursor: null,
      },
    },
  }),
  getPlan: defineRoute({
    method: 'get',
    path: '/api/v1/plans',
    access: 'runs:read',
    tag: 'Plans',
    feature: 'agent_runtime_v1',
    summary: 'Show a plan',
    description:
      'Returns a plan by the path of its file, with an edit of the file. For a caller with `runs:write`, no agent, the edit ' +
      'becomes facts first; for others nothing is recorded. Parts of it that contradict the facts are in `conflicts`. With `at`, the facts up to that position of the log, without later ' +
      'edits of the file.',
    query: ByPath.extend({ at: At }),
    reply: { schema: PlanView.extend(asOfReply) },
    example: { query: { path: PLAN.path }, reply: PLAN },
    problems: { 400: INVALID, 404: MISSING },
  }),
  runPlan: defineRoute({
    method: 'post',
    path: '/api/v1/plans/run',
    access: 'runs:write',
    tag: 'Plans',
    feature: 'agent_runtime_v1',
    summary: 'Run a plan',
    description:
      'Lets an agent do the open steps, one turn each. Ends after the last step, at the first failed step, ' +
      'at `maxTurns`, by a stop, or with the agent. The agent needs the tool `plan_step`.',
    body: z.strictObject({
      path: PlanPath,
      agent: AgentId,
      maxTurns: runPlan.request.shape.maxTurns.describe('Maximum number of turns.'),
    }),
    reply: { schema: PlanView, status: 202 },
    example: { body: { path: PLAN.path, agent: 'main' }, reply: PLAN },
    problems: {
      400: INVALID,
      404: 'there is no such plan or agent',
      409: '`PLAN.RUNNING`, `PLAN.DONE` or `PLAN.NO_TOOL`',
    },
  }),
  stopPlan: defineRoute({
    method: 'post',
    path: '/api/v1/plans/stop',
    access: 'runs:write',
    tag: 'Plans',
    feature: 'agent_runtime_v1',
    summary: 'Stop a plan',
    description: 'Stops the run of a plan and cancels its turn. Without a run it changes nothing.',
    body: ByPath,
    reply: { schema: PlanView },
    example: { body: { path: PLAN.path }, reply: PLAN },
    problems: { 404: MISSING },
  }),
  takePlanFacts: defineRoute({
    method: 'post',
    path: '/api/v1/plans/facts',
    access: 'runs:write',
    tag: 'Plans',
    feature: 'agent_runtime_v1',
    summary: 'Take the facts of a plan',
    description:
      'Settles the conflicts of the last edit: the file shows the facts instead of the edit, which stays in its history. ' +
      '`digest` is that of the plan as it was read.',
    body: takePlanFacts.request.pick({ path: true, digest: true }),
    reply: { schema: PlanView },
    example: { body: { path: PLAN.path, digest: PLAN.digest }, reply: PLAN },
    problems: { 404: MISSING, 409: '`FILE.STALE`: the file has another digest' },
  }),
} as const;
