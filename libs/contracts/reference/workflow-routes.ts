import { z } from 'zod';
import { RunView, WorkflowView, cancelRun, listRuns, listWorkflows } from '../agent/workflow-requests.js';
import { PageQuery, RunBody, RunsQuery, StartBody, WorkflowBody } from '../gateway/index.js';
import type { HttpRoute } from './http-route.js';

const ById = z.object({ id: z.uuid() });
const NO_WORKFLOW = { 404: 'there is no workflow with this id' };
const NO_RUN = { 404: 'there is no run with this id' };
const REFUSED = {
  400: 'the definition cannot be read',
  409: 'the `Idempotency-Key` was used for another request',
  422: 'the definition breaks a rule: a cycle (its path is named), an unknown agent, a reference to what is not there',
};

/** `/api/v1/workflows` and `/api/v1/runs`. */
export const WORKFLOW_ROUTES: readonly HttpRoute[] = [
  {
    method: 'get',
    path: '/api/v1/workflows',
    summary: 'The saved workflows.',
    query: PageQuery,
    reply: { schema: listWorkflows.reply },
  },
  {
    method: 'post',
    path: '/api/v1/workflows',
    summary: 'Saves a definition (YAML or JSON), validated unless it is a draft.',
    body: WorkflowBody,
    idempotent: true,
    reply: { schema: WorkflowView, status: 201 },
    problems: REFUSED,
  },
  {
    method: 'get',
    path: '/api/v1/workflows/{id}',
    summary: 'One workflow.',
    params: ById,
    reply: { schema: WorkflowView },
    problems: NO_WORKFLOW,
  },
  {
    method: 'put',
    path: '/api/v1/workflows/{id}',
    summary: 'Replaces the definition; runs that have started keep theirs.',
    params: ById,
    body: WorkflowBody,
    idempotent: true,
    reply: { schema: WorkflowView },
    problems: { ...NO_WORKFLOW, ...REFUSED },
  },
  {
    method: 'delete',
    path: '/api/v1/workflows/{id}',
    summary: 'Deletes a workflow; its runs stay readable.',
    params: ById,
    reply: { schema: z.void(), status: 204 },
    problems: NO_WORKFLOW,
  },
  {
    method: 'post',
    path: '/api/v1/workflows/{id}/validate',
    summary: 'Validates a draft.',
    params: ById,
    reply: { schema: WorkflowView },
    problems: NO_WORKFLOW,
  },
  {
    method: 'post',
    path: '/api/v1/workflows/{id}/start',
    summary: 'Starts a run of a workflow.',
    params: ById,
    body: StartBody,
    idempotent: true,
    reply: { schema: RunView, status: 202 },
    problems: { ...NO_WORKFLOW, 422: 'the workflow is not ready, or an input is missing or unknown' },
  },
  {
    method: 'get',
    path: '/api/v1/runs',
    summary: 'Runs, newest first, by workflow and status.',
    query: RunsQuery,
    reply: { schema: listRuns.reply },
  },
  {
    method: 'post',
    path: '/api/v1/runs',
    summary: 'Starts a run of a definition that is not saved.',
    body: RunBody,
    idempotent: true,
    reply: { schema: RunView, status: 202 },
    problems: REFUSED,
  },
  {
    method: 'get',
    path: '/api/v1/runs/{id}',
    summary: 'One run, with its tasks and what they brought.',
    params: ById,
    reply: { schema: RunView },
    problems: NO_RUN,
  },
  {
    method: 'post',
    path: '/api/v1/runs/{id}/cancel',
    summary: 'Cancels a run, and the turns that work for it.',
    params: ById,
    reply: { schema: cancelRun.reply },
    problems: NO_RUN,
  },
];
