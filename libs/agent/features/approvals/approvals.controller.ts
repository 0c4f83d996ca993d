import { Controller, Inject } from '@nestjs/common';
import { answerApproval, getApproval, listApprovals } from '@antiphon/contracts/agent';
import type { ApprovalView } from '@antiphon/contracts/agent';
import { HandleRequest } from '@antiphon/messaging';
import type { z } from 'zod';
import { AGENT_RUNTIME } from '../agent-runtime.js';
import type { AgentRuntime } from '../agent-runtime.js';
import type { AnswerApprovalReply, AnswerApprovalRequest } from './answer-approval.handler.js';

@Controller()
export class ApprovalsController {
  constructor(@Inject(AGENT_RUNTIME) private readonly runtime: AgentRuntime) {}

  @HandleRequest(answerApproval)
  answer(request: AnswerApprovalRequest): Promise<AnswerApprovalReply> {
    return this.runtime.approvals.answer(request);
  }

  @HandleRequest(listApprovals)
  list(request: z.output<typeof listApprovals.request>): Promise<z.input<typeof listApprovals.reply>> {
    return this.runtime.approvals.list(request);
  }

  @HandleRequest(getApproval)
  get(request: z.output<typeof getApproval.request>): Promise<ApprovalView> {
    return this.runtime.approvals.get(request);
  }
}
