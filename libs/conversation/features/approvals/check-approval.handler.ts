import { AgentDirectory } from '@antiphon/agents-features';
import type { PolicyAgents } from '@antiphon/agents-features';
import { checkApprovalInput } from '@antiphon/contracts/agent';
import { waitingCall } from '@antiphon/conversation-domain';
import { conflict, notFound, toStorableJson } from '@antiphon/kernel';
import type { JsonValue } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import { DATABASE_POOL } from '@antiphon/service-host';
import { Controller, Inject } from '@nestjs/common';
import type pg from 'pg';
import type { z } from 'zod';
import { SessionRegistry } from '../sessions/session-registry.js';
import { FRESH_TOOLS } from './answer-approval.handler.js';
import type { FreshTools } from './answer-approval.handler.js';
import { findApproval } from './approval-store.js';
import { refuseAgents, requireApprover } from './approver.js';
import { checkEdit } from './edit-checks.js';
import type { EditVerdict } from './edit-checks.js';

/** Checks changed arguments of a call that waits, before a person approves it with them. */
@Controller()
export class CheckApproval {
  constructor(
    @Inject(SessionRegistry) private readonly registry: SessionRegistry,
    @Inject(FRESH_TOOLS) private readonly tools: FreshTools,
    @Inject(AgentDirectory) private readonly agents: PolicyAgents,
    @Inject(DATABASE_POOL) private readonly pool: pg.Pool,
  ) {}

  @HandleRequest(checkApprovalInput)
  async handle({
    workspace,
    approvalId,
    input,
    approver,
  }: z.output<typeof checkApprovalInput.request>): Promise<EditVerdict> {
    refuseAgents(approver);
    const found = await findApproval(this.pool, workspace, approvalId);
    if (!found) throw notFound('APPROVAL.NOT_FOUND', `there is no approval ${approvalId}`);
    const { actor } = await this.registry.requireSession(workspace, found.sessionId);
    const { state } = actor.fold();
    const waiting = waitingCall(state, approvalId);
    requireApprover(approver, found.answerBy, waiting?.approval ?? null);
    if (!waiting) throw conflict('APPROVAL.CLOSED', 'this approval is not pending', { data: { approvalId } });
    const { call } = waiting;
    const tools = await this.tools.freshToolsOf(workspace, [call.name]);
    const edited = { workspace, agentId: state.started?.agentId ?? '', call, tools };
    return checkEdit(this.agents, { ...edited, input: toStorableJson(input as JsonValue) });
  }
}
