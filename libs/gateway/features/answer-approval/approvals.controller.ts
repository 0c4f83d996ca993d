import { Body, Controller, Get, HttpCode, Inject, Param, Post, Query } from '@nestjs/common';
import { answerApproval, getApproval, listApprovals } from '@antiphon/contracts/agent';
import type { ApprovalView } from '@antiphon/contracts/agent';
import { ApprovalAnswerBody, ApprovalsQuery, Id } from '@antiphon/contracts/gateway';
import { REQUESTS } from '@antiphon/service-host';
import type { z } from 'zod';
import { approverAtTheGate } from '../authenticate/approver.js';
import type { GatewayRequests } from '../gateway-requests.port.js';
import { WORKSPACE } from '../gateway.tokens.js';
import { ReadPipe } from '../read-body/read-body.js';

/** `/api/v1/approvals`: tool calls that wait for somebody's word. */
@Controller('api/v1/approvals')
export class ApprovalsController {
  constructor(
    @Inject(REQUESTS) private readonly requests: GatewayRequests,
    @Inject(WORKSPACE) private readonly workspace: string,
  ) {}

  @Get()
  list(
    @Query(new ReadPipe(ApprovalsQuery, 'GATEWAY.INVALID_QUERY'))
    { session, ...query }: z.output<typeof ApprovalsQuery>,
  ): Promise<z.output<typeof listApprovals.reply>> {
    const of = session === undefined ? {} : { sessionId: session };
    return this.requests.request(listApprovals, { workspace: this.workspace, ...query, ...of });
  }

  @Get(':id')
  get(@Param('id', new ReadPipe(Id)) approvalId: string): Promise<ApprovalView> {
    return this.requests.request(getApproval, { workspace: this.workspace, approvalId });
  }

  @Post(':id/answer')
  @HttpCode(200)
  answer(
    @Param('id', new ReadPipe(Id)) approvalId: string,
    @Body(new ReadPipe(ApprovalAnswerBody)) body: z.output<typeof ApprovalAnswerBody>,
  ): Promise<z.output<typeof answerApproval.reply>> {
    const { workspace } = this;
    return this.requests.request(answerApproval, {
      ...{ workspace, approvalId, approver: approverAtTheGate() },
      ...body,
    });
  }
}
