import { Controller, Inject } from '@nestjs/common';
import {
  cancelRun,
  deleteWorkflow,
  getRun,
  getWorkflow,
  listRuns,
  listWorkflows,
  saveWorkflow,
  startRun,
  validateWorkflow,
} from '@antiphon/contracts/agent';
import type { RunHistory, RunView, WorkflowView } from '@antiphon/contracts/agent';
import type { Principal } from '@antiphon/contracts/identity';
import { RUN_ROUTES, WORKFLOW_ROUTES, type RouteInput } from '@antiphon/contracts/reference';
import type { EventStore } from '@antiphon/event-store';
import { EVENT_STORE, REQUESTS } from '@antiphon/service-host';
import type { z } from 'zod';
import { CurrentPrincipal, refuseAgentKey } from '../access/access-guard.js';
import type { GatewayRequests } from '../gateway.ports.js';
import { HandleRoute } from '../route/handle-route.js';
import { readRunHistory } from './read-run-history.js';

type Workflows = typeof WORKFLOW_ROUTES;
type Runs = typeof RUN_ROUTES;

/**
 * Returns the fields of a principal that every change carries. Throws `AGENT.NOT_ALLOWED` for the
 * key of an agent: the nodes of a workflow are turns of any agents. An agent delegates tasks.
 */
const commonOf = (principal: Principal) => {
  refuseAgentKey(principal, 'changes no workflows and runs; the agent delegates tasks');
  const { workspace, caller } = principal;
  return { workspace, caller };
};

/** Serves saved workflows. */
@Controller()
export class WorkflowsController {
  constructor(@Inject(REQUESTS) private readonly requests: GatewayRequests) {}

  @HandleRoute(WORKFLOW_ROUTES.listWorkflows)
  list(
    { query }: RouteInput<Workflows['listWorkflows']>,
    @CurrentPrincipal() { workspace }: Principal,
  ): Promise<z.output<typeof listWorkflows.reply>> {
    return this.requests.request(listWorkflows, { workspace, ...query });
  }

  @HandleRoute(WORKFLOW_ROUTES.createWorkflow)
  create(
    { body, idempotencyKey }: RouteInput<Workflows['createWorkflow']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<WorkflowView> {
    return this.requests.request(saveWorkflow, { ...commonOf(principal), ...body, idempotencyKey });
  }

  @HandleRoute(WORKFLOW_ROUTES.getWorkflow)
  get(
    { params, query }: RouteInput<Workflows['getWorkflow']>,
    @CurrentPrincipal() { workspace }: Principal,
  ): Promise<z.output<typeof getWorkflow.reply>> {
    return this.requests.request(getWorkflow, { workspace, workflowId: params.id, ...query });
  }

  @HandleRoute(WORKFLOW_ROUTES.replaceWorkflow)
  replace(
    { params, body, idempotencyKey }: RouteInput<Workflows['replaceWorkflow']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<WorkflowView> {
    const workflowId = params.id;
    const common = commonOf(principal);
    return this.requests.request(saveWorkflow, { ...common, workflowId, ...body, idempotencyKey });
  }

  @HandleRoute(WORKFLOW_ROUTES.deleteWorkflow)
  async remove(
    { params }: RouteInput<Workflows['deleteWorkflow']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<void> {
    await this.requests.request(deleteWorkflow, { ...commonOf(principal), workflowId: params.id });
  }

  @HandleRoute(WORKFLOW_ROUTES.validateWorkflow)
  validate(
    { params }: RouteInput<Workflows['validateWorkflow']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<WorkflowView> {
    return this.requests.request(validateWorkflow, { ...commonOf(principal), workflowId: params.id });
  }

  @HandleRoute(WORKFLOW_ROUTES.startWorkflow)
  async start(
    { params, body, idempotencyKey }: RouteInput<Workflows['startWorkflow']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<RunView> {
    const { runId } = await this.requests.request(startRun, {
      ...commonOf(principal),
      what: { workflowId: params.id },
      inputs: body.inputs,
      idempotencyKey,
    });
    return this.requests.request(getRun, { workspace: principal.workspace, runId });
  }
}

/**
 * Returns the workspace whose runs the principal reads. Throws `AGENT.NOT_ALLOWED` for the key of
 * an agent: the results of nodes are answers of any agents.
 */
const requireRunReader = (principal: Principal) => {
  refuseAgentKey(principal, 'reads no runs');
  return { workspace: principal.workspace };
};

/** Serves runs, of saved workflows and of definitions that are not saved. */
@Controller()
export class RunsController {
  constructor(
    @Inject(REQUESTS) private readonly requests: GatewayRequests,
    @Inject(EVENT_STORE) private readonly store: EventStore,
  ) {}

  @HandleRoute(RUN_ROUTES.listRuns)
  list(
    { query: { workflow: workflowId, ...query } }: RouteInput<Runs['listRuns']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<z.output<typeof listRuns.reply>> {
    return this.requests.request(listRuns, { ...requireRunReader(principal), workflowId, ...query });
  }

  @HandleRoute(RUN_ROUTES.startRun)
  async start(
    { body, idempotencyKey }: RouteInput<Runs['startRun']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<RunView> {
    const { runId } = await this.requests.request(startRun, {
      ...commonOf(principal),
      what: { source: body.workflow },
      inputs: body.inputs,
      idempotencyKey,
    });
    return this.requests.request(getRun, { workspace: principal.workspace, runId });
  }

  @HandleRoute(RUN_ROUTES.getRun)
  get(
    { params, query }: RouteInput<Runs['getRun']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<z.output<typeof getRun.reply>> {
    return this.requests.request(getRun, { ...requireRunReader(principal), runId: params.id, ...query });
  }

  @HandleRoute(RUN_ROUTES.readRunHistory)
  async history(
    { params, query }: RouteInput<Runs['readRunHistory']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<RunHistory> {
    return readRunHistory(this.store, { ...requireRunReader(principal), runId: params.id, ...query });
  }

  @HandleRoute(RUN_ROUTES.cancelRun)
  cancel(
    { params }: RouteInput<Runs['cancelRun']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<z.output<typeof cancelRun.reply>> {
    return this.requests.request(cancelRun, { ...commonOf(principal), runId: params.id });
  }
}
