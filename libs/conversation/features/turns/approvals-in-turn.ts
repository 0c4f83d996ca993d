import type { SessionCommand, TurnToolCall } from '@antiphon/conversation-domain';
import type { ApprovalRule } from '@antiphon/config';
import type { ToolDescription } from '@antiphon/contracts/sandbox';
import { failpoint } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { approvalDigestOf, decisionOn, moduleOf } from '../approvals/approval-rules.js';
import type { OnApprovalChange } from '../approvals/approval-timers.js';
import type { NativeToolPort } from '../tools/native-tool.port.js';
import { approvalIdOf } from '@antiphon/agent-log';
import { retryTransient } from '../sessions/retry-transient.js';
import type { StepContext, StepOf } from './step-context.js';
import type { ToolCatalog } from './tool-catalog.js';
import type { TurnPolicy } from './turn-policy.js';

export interface ApprovalDeps {
  readonly policy: TurnPolicy;
  readonly tools: ToolCatalog;
  readonly nativeTools: Pick<NativeToolPort, 'preview'>;
  readonly logger: Logger;
  readonly onApprovalChange: OnApprovalChange;
}

type ApprovalRequest = Extract<SessionCommand, { type: 'RequestApprovals' }>['data']['approvals'][number];

const addMs = (time: string, ms: number): string => new Date(Date.parse(time) + ms).toISOString();

const digestNow = (
  { actor: { workspace, sessionId } }: StepContext,
  { callId, name, input }: TurnToolCall,
  tools: readonly ToolDescription[],
): string => approvalDigestOf({ workspace, sessionId, callId, tool: name, input }, moduleOf(tools, name));

const toRequest = (
  context: StepContext,
  call: TurnToolCall,
  rule: ApprovalRule,
  tools: readonly ToolDescription[],
  now: string,
): ApprovalRequest => ({
  callId: call.callId,
  approvalId: approvalIdOf(call.callId),
  ...moduleOf(tools, call.name),
  digest: digestNow(context, call, tools),
  answerBy: rule.answerBy,
  expiresAt: addMs(now, rule.expiresAfterMs),
  escalateAt: rule.escalateAfterMs === null ? null : addMs(now, rule.escalateAfterMs),
  escalateTo: rule.escalateAfterMs === null ? null : rule.escalateTo,
});

/** Steps of a turn that request approvals, and that check them before their calls run. */
export class ApprovalsInTurn {
  constructor(private readonly deps: ApprovalDeps) {}

  /**
   * Requests an approval for each call of a step that needs one. The turn then waits in the log
   * only.
   */
  async requestApprovals(context: StepContext, step: StepOf<'request_approvals'>): Promise<void> {
    const { agent } = context;
    const tools = await this.readTools(context);
    const now = this.deps.policy.now();
    const approvals: ApprovalRequest[] = [];
    for (const call of step.calls) {
      const description = tools.find(({ name }) => name === call.name);
      if (call.approval !== null || !agent) continue;
      const { name: tool, input } = call;
      const decided = decisionOn(agent, { tool, input, description });
      if (decided.decision !== 'ask') continue;
      const preview = await this.deps.nativeTools.preview(context, call);
      const request = toRequest(context, call, decided.approval, tools, now);
      approvals.push(preview === undefined ? request : { ...request, preview });
    }
    await context.record({ type: 'RequestApprovals', data: { turnId: step.turnId, approvals }, now });
    await failpoint('agent.approval.asked');
    const { workspace, sessionId } = context.actor;
    for (const { approvalId } of approvals)
      this.deps.onApprovalChange({ workspace, sessionId, agentId: agent?.id ?? '', approvalId, open: true });
  }

  /**
   * Requests the calls of a step. Approvals are voided if the tools have changed since they were
   * given.
   */
  async requestTools(context: StepContext, { turnId, calls }: StepOf<'request_tools'>): Promise<void> {
    const { actor } = context;
    const approved = calls.filter(({ approval }) => approval !== null);
    if (approved.length === 0) return context.record(null);
    const tools = await this.readTools(context);
    const now = this.deps.policy.now();
    const voided = approved.flatMap((call) => {
      const digest = digestNow(context, call, tools);
      return digest === call.approval?.digest ? [] : [{ callId: call.callId, digest }];
    });
    if (voided.length > 0) return context.record({ type: 'VoidApprovals', data: { turnId, voided }, now });
    const { toolRequest } = this.deps.policy.contextOf(actor, actor.fold().state);
    await context.record({ type: 'RequestTools', data: { turnId, calls: calls.map(toolRequest) }, now });
  }

  /** Reads the sandbox's tools, not from the cache. Waits for a sandbox that is unavailable. */
  private readTools({ actor, agent, signal }: StepContext): Promise<readonly ToolDescription[]> {
    const { tools, logger } = this.deps;
    return retryTransient(() => tools.freshToolsOf(actor.workspace, agent?.tools ?? []), signal, logger);
  }
}
