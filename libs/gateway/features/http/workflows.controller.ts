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
import type { RunView, WorkflowView } from '@antiphon/contracts/agent';
import { RUN_ROUTES, WORKFLOW_ROUTES, type RouteInput } from '@antiphon/contracts/reference';
import { REQUESTS } from '@antiphon/service-host';
import type { z } from 'zod';
import { HTTP_CALLER, WORKSPACE, type GatewayRequests } from '../gateway.ports.js';
import { HandleRoute } from './handle-route.js';

type Workflows = typeof WORKFLOW_ROUTES;
type Runs = typeof RUN_ROUTES;

/** Serves saved workflows. */
@Controller()
export class WorkflowsController {
  private readonly common: { readonly workspace: string; readonly caller: string };

  constructor(
    @Inject(REQUESTS) private readonly requests: GatewayRequests,
    @Inject(WORKSPACE) workspace: string,
  ) {
    this.common = { workspace, caller: HTTP_CALLER };
  }

  @HandleRoute(WORKFLOW_ROUTES.listWorkflows)
  list({ query }: RouteInput<Workflows['listWorkflows']>): Promise<z.output<typeof listWorkflows.reply>> {
    return this.requests.request(listWorkflows, { workspace: this.common.workspace, ...query });
  }

  @HandleRoute(WORKFLOW_ROUTES.createWorkflow)
  create({ body, idempotencyKey }: RouteInput<Workflows['createWorkflow']>): Promise<WorkflowView> {
    return this.requests.request(saveWorkflow, { ...this.common, ...body, idempotencyKey });
  }

  @HandleRoute(WORKFLOW_ROUTES.getWorkflow)
  get({ params }: RouteInput<Workflows['getWorkflow']>): Promise<WorkflowView> {
    return this.requests.request(getWorkflow, { workspace: this.common.workspace, workflowId: params.id });
  }

  @HandleRoute(WORKFLOW_ROUTES.replaceWorkflow)
  replace({ params, body, idempotencyKey }: RouteInput<Workflows['replaceWorkflow']>): Promise<WorkflowView> {
    const workflowId = params.id;
    return this.requests.request(saveWorkflow, { ...this.common, workflowId, ...body, idempotencyKey });
  }

  @HandleRoute(WORKFLOW_ROUTES.deleteWorkflow)
  async remove({ params }: RouteInput<Workflows['deleteWorkflow']>): Promise<void> {
    await this.requests.request(deleteWorkflow, { ...this.common, workflowId: params.id });
  }

  @HandleRoute(WORKFLOW_ROUTES.validateWorkflow)
  validate({ params }: RouteInput<Workflows['validateWorkflow']>): Promise<WorkflowView> {
    return this.requests.request(validateWorkflow, { ...this.common, workflowId: params.id });
  }

  @HandleRoute(WORKFLOW_ROUTES.startWorkflow)
  async start({ params, body, idempotencyKey }: RouteInput<Workflows['startWorkflow']>): Promise<RunView> {
    const { runId } = await this.requests.request(startRun, {
      ...this.common,
      what: { workflowId: params.id },
      inputs: body.inputs,
      idempotencyKey,
    });
    return this.requests.request(getRun, { workspace: this.common.workspace, runId });
  }
}

/** Serves runs, of saved workflows and of definitions that are not saved. */
@Controller()
export class RunsController {
  constructor(
    @Inject(REQUESTS) private readonly requests: GatewayRequests,
    @Inject(WORKSPACE) private readonly workspace: string,
  ) {}

  @HandleRoute(RUN_ROUTES.listRuns)
  list({
    query: { workflow: workflowId, ...query },
  }: RouteInput<Runs['listRuns']>): Promise<z.output<typeof listRuns.reply>> {
    return this.requests.request(listRuns, { workspace: this.workspace, workflowId, ...query });
  }

  @HandleRoute(RUN_ROUTES.startRun)
  async start({ body, idempotencyKey }: RouteInput<Runs['startRun']>): Promise<RunView> {
    const { runId } = await this.requests.request(startRun, {
      workspace: this.workspace,
      caller: HTTP_CALLER,
      what: { source: body.workflow },
      inputs: body.inputs,
      idempotencyKey,
    });
    return this.read(runId);
  }

  @HandleRoute(RUN_ROUTES.getRun)
  get({ params }: RouteInput<Runs['getRun']>): Promise<RunView> {
    return this.read(params.id);
  }

  @HandleRoute(RUN_ROUTES.cancelRun)
  cancel({ params }: RouteInput<Runs['cancelRun']>): Promise<z.output<typeof cancelRun.reply>> {
    const { workspace } = this;
    return this.requests.request(cancelRun, { workspace, caller: HTTP_CALLER, runId: params.id });
  }

  private read(runId: string): Promise<RunView> {
    return this.requests.request(getRun, { workspace: this.workspace, runId });
  }
}
