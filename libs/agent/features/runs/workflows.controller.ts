import { Controller, Inject } from '@nestjs/common';
import {
  deleteWorkflow,
  getWorkflow,
  listWorkflows,
  saveWorkflow,
  validateWorkflow,
} from '@antiphon/contracts/agent';
import type { WorkflowView } from '@antiphon/contracts/agent';
import type { z } from 'zod';
import { HandleRequest } from '@antiphon/messaging';
import { RUNS_ENGINE } from './run-worker.js';
import type { RunsEngine } from './run-worker.js';

@Controller()
export class WorkflowsController {
  constructor(@Inject(RUNS_ENGINE) private readonly engine: RunsEngine) {}

  @HandleRequest(saveWorkflow)
  save(request: z.output<typeof saveWorkflow.request>): Promise<WorkflowView> {
    return this.engine.workflows.save(request);
  }

  @HandleRequest(validateWorkflow)
  validate(request: z.output<typeof validateWorkflow.request>): Promise<WorkflowView> {
    return this.engine.workflows.validate(request);
  }

  @HandleRequest(deleteWorkflow)
  remove(request: z.output<typeof deleteWorkflow.request>): Promise<{ deleted: boolean }> {
    return this.engine.workflows.remove(request);
  }

  @HandleRequest(getWorkflow)
  get(request: z.output<typeof getWorkflow.request>): Promise<WorkflowView> {
    return this.engine.getWorkflow(request);
  }

  @HandleRequest(listWorkflows)
  list(request: z.output<typeof listWorkflows.request>): Promise<z.output<typeof listWorkflows.reply>> {
    return this.engine.listWorkflows(request);
  }
}
