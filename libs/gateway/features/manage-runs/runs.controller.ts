import { Body, Controller, Get, Headers, HttpCode, Inject, Param, Post, Query } from '@nestjs/common';
import { cancelRun, getRun, listRuns, startRun } from '@antiphon/contracts/agent';
import type { RunView } from '@antiphon/contracts/agent';
import { RunsQuery } from '@antiphon/contracts/gateway';
import { REQUESTS } from '@antiphon/service-host';
import type { z } from 'zod';
import type { GatewayRequests } from '../gateway-requests.port.js';
import { HTTP_CALLER, WORKSPACE } from '../gateway.tokens.js';
import { Id, Key, RunBody } from '@antiphon/contracts/gateway';
import { ReadPipe, readAs } from '../read-body/read-body.js';

/** `/api/v1/runs`: executions of workflows, and of definitions that nobody saved. */
@Controller('api/v1/runs')
export class RunsController {
  constructor(
    @Inject(REQUESTS) private readonly requests: GatewayRequests,
    @Inject(WORKSPACE) private readonly workspace: string,
  ) {}

  @Get()
  list(
    @Query(new ReadPipe(RunsQuery, 'GATEWAY.INVALID_QUERY'))
    { workflow, ...query }: z.output<typeof RunsQuery>,
  ): Promise<z.output<typeof listRuns.reply>> {
    const of = workflow === undefined ? {} : { workflowId: workflow };
    return this.requests.request(listRuns, { workspace: this.workspace, ...query, ...of });
  }

  /** Beyond the contract: starts a definition without saving it, `{workflow, inputs}`. */
  @Post()
  @HttpCode(202)
  async start(
    @Body(new ReadPipe(RunBody)) { workflow, inputs = {} }: z.output<typeof RunBody>,
    @Headers('idempotency-key') key?: string,
  ): Promise<RunView> {
    const idempotencyKey = readAs(Key, key, 'GATEWAY.INVALID_HEADER');
    const { runId } = await this.requests.request(startRun, {
      ...{ workspace: this.workspace, caller: HTTP_CALLER, what: { source: workflow }, inputs },
      ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    });
    return this.get(runId);
  }

  @Get(':id')
  get(@Param('id', new ReadPipe(Id)) runId: string): Promise<RunView> {
    return this.requests.request(getRun, { workspace: this.workspace, runId });
  }

  @Post(':id/cancel')
  @HttpCode(200)
  cancel(@Param('id', new ReadPipe(Id)) runId: string): Promise<z.output<typeof cancelRun.reply>> {
    return this.requests.request(cancelRun, { workspace: this.workspace, caller: HTTP_CALLER, runId });
  }
}
