import {
  Body,
  Controller,
  Delete,
  Get,
  Headers,
  HttpCode,
  Inject,
  Param,
  Post,
  Put,
  Query,
} from '@nestjs/common';
import {
  deleteWorkflow,
  getRun,
  getWorkflow,
  listWorkflows,
  saveWorkflow,
  startRun,
  validateWorkflow,
} from '@antiphon/contracts/agent';
import type { RunView, WorkflowView } from '@antiphon/contracts/agent';
import { PageQuery } from '@antiphon/contracts/gateway';
import { REQUESTS } from '@antiphon/service-host';
import type { z } from 'zod';
import type { GatewayRequests } from '../gateway-requests.port.js';
import { HTTP_CALLER, WORKSPACE } from '../gateway.tokens.js';
import { ReadPipe, readAs } from '../read-body/read-body.js';
import { Id, Key, StartBody, WorkflowBody } from '@antiphon/contracts/gateway';

const keyOf = (header: string | undefined): { idempotencyKey?: string } => {
  const idempotencyKey = readAs(Key, header, 'GATEWAY.INVALID_HEADER');
  return idempotencyKey === undefined ? {} : { idempotencyKey };
};

/** `/api/v1/workflows`: definitions of runs. */
@Controller('api/v1/workflows')
export class WorkflowsController {
  constructor(
    @Inject(REQUESTS) private readonly requests: GatewayRequests,
    @Inject(WORKSPACE) private readonly workspace: string,
  ) {}

  @Get()
  list(
    @Query(new ReadPipe(PageQuery, 'GATEWAY.INVALID_QUERY')) page: z.output<typeof PageQuery>,
  ): Promise<z.output<typeof listWorkflows.reply>> {
    return this.requests.request(listWorkflows, { workspace: this.workspace, ...page });
  }

  @Post()
  create(
    @Body(new ReadPipe(WorkflowBody)) body: z.output<typeof WorkflowBody>,
    @Headers('idempotency-key') key?: string,
  ): Promise<WorkflowView> {
    return this.requests.request(saveWorkflow, { ...this.#asked(), ...body, ...keyOf(key) });
  }

  @Get(':id')
  get(@Param('id', new ReadPipe(Id)) workflowId: string): Promise<WorkflowView> {
    return this.requests.request(getWorkflow, { workspace: this.workspace, workflowId });
  }

  @Put(':id')
  replace(
    @Param('id', new ReadPipe(Id)) workflowId: string,
    @Body(new ReadPipe(WorkflowBody)) body: z.output<typeof WorkflowBody>,
    @Headers('idempotency-key') key?: string,
  ): Promise<WorkflowView> {
    return this.requests.request(saveWorkflow, { ...this.#asked(), workflowId, ...body, ...keyOf(key) });
  }

  @Delete(':id')
  @HttpCode(204)
  async remove(@Param('id', new ReadPipe(Id)) workflowId: string): Promise<void> {
    await this.requests.request(deleteWorkflow, { ...this.#asked(), workflowId });
  }

  @Post(':id/validate')
  @HttpCode(200)
  validate(@Param('id', new ReadPipe(Id)) workflowId: string): Promise<WorkflowView> {
    return this.requests.request(validateWorkflow, { ...this.#asked(), workflowId });
  }

  @Post(':id/start')
  @HttpCode(202)
  async start(
    @Param('id', new ReadPipe(Id)) workflowId: string,
    @Body(new ReadPipe(StartBody)) { inputs = {} }: z.output<typeof StartBody>,
    @Headers('idempotency-key') key?: string,
  ): Promise<RunView> {
    const what = { workflowId };
    const { runId } = await this.requests.request(startRun, {
      ...{ ...this.#asked(), what, inputs },
      ...keyOf(key),
    });
    return this.requests.request(getRun, { workspace: this.workspace, runId });
  }

  #asked(): { workspace: string; caller: string } {
    return { workspace: this.workspace, caller: HTTP_CALLER };
  }
}
