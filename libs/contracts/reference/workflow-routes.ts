import { z } from 'zod';
import { RunHistory } from '../agent/run-history.js';
import {
  RunView,
  WorkflowView,
  cancelRun,
  getRun,
  getWorkflow,
  listRuns,
  listWorkflows,
} from '../agent/workflow-requests.js';
import {
  ById,
  PageQuery,
  RunBody,
  RunHistoryQuery,
  RunsQuery,
  StartBody,
  WorkflowBody,
  At,
  AtQuery,
} from '../gateway/index.js';
import { DEFINITION, IDS, RUN, RUN_SUMMARY, WORKFLOW, WORKFLOW_SUMMARY } from './examples.js';
import { defineRoute } from './http-route.js';

const NO_WORKFLOW = { 404: 'there is no workflow with this id' };
const NO_RUN = { 404: 'there is no run with this id' };
const REFUSED = {
  400: 'the definition cannot be parsed',
  409: 'the `Idempotency-Key` was used for another request, or `version` is not the current one',
  422: 'the definition breaks a rule: a cycle (`detail` names its path), an unknown agent, or an unknown reference',
};
const YAML = ['application/yaml'] as const;
const WORKFLOW_ID = { id: IDS.workflow };
const RUN_ID = { id: IDS.run };

/** Routes of `/api/v1/workflows`. */
export const WORKFLOW_ROUTES = {
  listWorkflows: defineRoute({
    method: 'get',
    path: '/api/v1/workflows',
    access: 'runs:read',
    tag: 'Workflows',
    summary: 'List workflows',
    description: 'Returns the saved workflows.',
    query: PageQuery.extend({ at: At }),
    reply: { schema: listWorkflows.reply },
    example: { query: { limit: 50 }, reply: { workflows: [WORKFLOW_SUMMARY], nextCursor: null } },
  }),
  createWorkflow: defineRoute({
    method: 'post',
    path: '/api/v1/workflows',
    access: 'runs:write',
    tag: 'Workflows',
    summary: 'Save a workflow',
    description:
      'Saves a definition as a new workflow. The body is YAML, the definition as JSON, or `{definition, draft}`. ' +
      'An invalid definition is refused unless `draft` is true. ' +
      'Limits: 64 nodes, 32 nodes on a path, 256 Ki characters.',
    body: WorkflowBody,
    bodyMedia: YAML,
    idempotent: true,
    reply: { schema: WorkflowView, status: 201 },
    example: { body: DEFINITION, reply: WORKFLOW },
    problems: REFUSED,
  }),
  getWorkflow: defineRoute({
    method: 'get',
    path: '/api/v1/workflows/{id}',
    access: 'runs:read',
    tag: 'Workflows',
    summary: 'Get a workflow',
    description: 'Returns one workflow with its current definition.',
    params: ById,
    query: AtQuery,
    reply: { schema: getWorkflow.reply },
    example: { params: WORKFLOW_ID, reply: WORKFLOW },
    problems: NO_WORKFLOW,
  }),
  replaceWorkflow: defineRoute({
    method: 'put',
    path: '/api/v1/workflows/{id}',
    access: 'runs:write',
    tag: 'Workflows',
    summary: 'Replace a workflow',
    description:
      'Saves the next version of a definition. Runs that have started keep the version they started with. ' +
      'With `{definition, version}` a save over a newer version is refused.',
    params: ById,
    body: WorkflowBody,
    bodyMedia: YAML,
    idempotent: true,
    reply: { schema: WorkflowView },
    example: { params: WORKFLOW_ID, body: DEFINITION, reply: { ...WORKFLOW, version: 2 } },
    problems: { ...NO_WORKFLOW, ...REFUSED },
  }),
  deleteWorkflow: defineRoute({
    method: 'delete',
    path: '/api/v1/workflows/{id}',
    access: 'runs:write',
    tag: 'Workflows',
    summary: 'Delete a workflow',
    description: 'Deletes a workflow. Its runs stay readable.',
    params: ById,
    reply: { schema: z.void(), status: 204 },
    example: { params: WORKFLOW_ID },
    problems: NO_WORKFLOW,
  }),
  validateWorkflow: defineRoute({
    method: 'post',
    path: '/api/v1/workflows/{id}/validate',
    access: 'runs:write',
    tag: 'Workflows',
    summary: 'Validate a draft',
    description: 'Validates a draft again. The response says `ready`, or names the problem.',
    params: ById,
    reply: { schema: WorkflowView },
    example: { params: WORKFLOW_ID, reply: WORKFLOW },
    problems: NO_WORKFLOW,
  }),
  startWorkflow: defineRoute({
    method: 'post',
    path: '/api/v1/workflows/{id}/start',
    access: 'runs:write',
    tag: 'Workflows',
    summary: 'Start a run of a workflow',
    description:
      'Accepts a run and returns it at once; poll it, or read its events. All inputs together: 128 Ki characters.',
    params: ById,
    body: StartBody,
    idempotent: true,
    reply: { schema: RunView, status: 202 },
    example: { params: WORKFLOW_ID, body: { inputs: { topic: 'tide tables' } }, reply: RUN },
    problems: { ...NO_WORKFLOW, 422: 'the workflow is not ready, or an input is missing or unknown' },
  }),
} as const;

/** Routes of `/api/v1/runs`. */
export const RUN_ROUTES = {
  listRuns: defineRoute({
    method: 'get',
    path: '/api/v1/runs',
    access: 'runs:read',
    tag: 'Runs',
    summary: 'List runs',
    description: 'Returns runs, newest first.',
    query: RunsQuery,
    reply: { schema: listRuns.reply },
    example: { query: { status: 'running' }, reply: { runs: [RUN_SUMMARY], nextCursor: null } },
  }),
  startRun: defineRoute({
    method: 'post',
    path: '/api/v1/runs',
    access: 'runs:write',
    tag: 'Runs',
    summary: 'Start a run of an unsaved definition',
    description: 'Validates the definition, accepts a run and returns it at once.',
    body: RunBody,
    idempotent: true,
    reply: { schema: RunView, status: 202 },
    example: {
      body: { workflow: DEFINITION, inputs: { topic: 'tide tables' } },
      reply: { ...RUN, workflowId: null, workflowVersion: null },
    },
    problems: REFUSED,
  }),
  getRun: defineRoute({
    method: 'get',
    path: '/api/v1/runs/{id}',
    access: 'runs:read',
    tag: 'Runs',
    summary: 'Get a run',
    description:
      'Returns one run with its tasks and their outputs. Long outputs are cut; the log has all of them.',
    params: ById,
    query: AtQuery,
    reply: { schema: getRun.reply },
    example: { params: RUN_ID, reply: RUN },
    problems: NO_RUN,
  }),
  readRunHistory: defineRoute({
    method: 'get',
    path: '/api/v1/runs/{id}/history',
    access: 'runs:read',
    tag: 'Runs',
    summary: 'Read a part of the history of a run',
    description:
      'Returns the run as of `from`, and the events after it up to `to`. The rules of a run fold them to the run ' +
      'as of any position between, as `GET /api/v1/runs/{id}?at=` returns it. A page has at most 4 MiB of events. ' +
      'Continue with `from` at `position` while `isLast` is false.',
    params: ById,
    query: RunHistoryQuery,
    reply: { schema: RunHistory },
    example: {
      params: RUN_ID,
      query: { from: 181_059, limit: 1 },
      reply: {
        ...{ from: 181_059, position: 181_060, head: 184_203, isLast: false, snapshot: { run: RUN } },
        events: [
          {
            ...{ version: 4, position: 181_060, recordedAt: '2026-11-22T10:22:00.000Z' },
            event: {
              ...{ type: 'RunCancelRequested', schemaVersion: 1 },
              data: { runId: IDS.run, requestedAt: '2026-11-22T10:22:00.000Z' },
            },
          },
        ],
      },
    },
    problems: {
      404: 'there is no run with this id, or it started after `to`',
      422: '`from` or `to` is beyond the head of the log (`LOG.POSITION_AHEAD`)',
    },
  }),
  cancelRun: defineRoute({
    method: 'post',
    path: '/api/v1/runs/{id}/cancel',
    access: 'runs:write',
    tag: 'Runs',
    summary: 'Cancel a run',
    description: 'Cancels a run and the open turns of its tasks. `cancelled` is false if the run had ended.',
    params: ById,
    reply: { schema: cancelRun.reply },
    example: { params: RUN_ID, reply: { cancelled: true, status: 'cancelling' } },
    problems: NO_RUN,
  }),
} as const;
