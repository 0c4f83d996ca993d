import type { SessionCommand, Step, TurnToolCall } from '@antiphon/agent-domain';
import type { ApprovalRule } from '@antiphon/config';
import type { ToolDescription } from '@antiphon/contracts/sandbox';
import { failpoint, isoTime } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { followUpContext } from './turn-policy.js';
import type { PolicyDeps } from './turn-policy.js';
import { approvalIdOf } from '../derived-ids.js';
import { untilAnswered } from './stop.js';
import type { StepContext } from './step-context.js';
import { approvalDigestOf, moduleOf, ruleFor } from '../approvals/approval-rules.js';

export interface AskDeps extends PolicyDeps {
  readonly logger: Logger;
  /** Called after the commit with each approval that is requested or closed in this process. */
  readonly onApprovalChange: (change: AskedApproval) => void;
}

/** An approval that a turn has requested. */
export interface AskedApproval {
  readonly workspace: string;
  readonly sessionId: string;
  readonly agentId: string;
  readonly approvalId: string;
  readonly open: boolean;
}

type Record = (command: SessionCommand | null) => Promise<void>;
type StepOf<Kind extends Step['kind']> = Extract<Step, { kind: Kind }>;
type Asked = Extract<SessionCommand, { type: 'RequestApprovals' }>['data']['approvals'][number];

/** The sandbox's tools as they are now; a call waits for a sandbox that is away. */
const describe = ({ services, actor, agent, signal }: StepContext): Promise<readonly ToolDescription[]> =>
  untilAnswered(
    () => services.tools.freshToolsOf(actor.workspace, agent?.tools ?? []),
    signal,
    services.logger,
  );

const digestNow = (
  { actor: { workspace, sessionId } }: StepContext,
  { callId, name, input }: TurnToolCall,
  tools: readonly ToolDescription[],
): string => approvalDigestOf({ workspace, sessionId, callId, tool: name, input }, moduleOf(tools, name));

const after = (from: string, ms: number): string => new Date(Date.parse(from) + ms).toISOString();

const toAsk = (
  work: StepContext,
  call: TurnToolCall,
  rule: ApprovalRule,
  tools: readonly ToolDescription[],
  now: string,
): Asked => ({
  callId: call.callId,
  approvalId: approvalIdOf(call.callId),
  ...moduleOf(tools, call.name),
  digest: digestNow(work, call, tools),
  answerBy: rule.answerBy,
  expiresAt: after(now, rule.expiresAfterMs),
  escalateAt: rule.escalateAfterMs === null ? null : after(now, rule.escalateAfterMs),
  escalateTo: rule.escalateAfterMs === null ? null : rule.escalateTo,
});

const tellAsked = ({ services, actor, agent }: StepContext, approvals: readonly Asked[]): void => {
  const { workspace, sessionId } = actor;
  const agentId = agent?.id ?? '';
  for (const { approvalId } of approvals)
    services.onApprovalChange({ workspace, sessionId, agentId, approvalId, open: true });
};

/** Asks for somebody's word about each call of a step that needs one; from then on the turn waits in the log alone. */
export const askApprovals = async (
  work: StepContext,
  step: StepOf<'request_approvals'>,
  record: Record,
): Promise<void> => {
  const tools = await describe(work);
  const now = isoTime(work.services.clock);
  const approvals = step.calls.flatMap((call) => {
    const description = tools.find(({ name }) => name === call.name);
    const rule = call.approval === null && work.agent ? ruleFor(work.agent, call.name, description) : null;
    return rule && work.agent?.tools.includes(call.name) ? [toAsk(work, call, rule, tools, now)] : [];
  });
  await record({ type: 'RequestApprovals', data: { turnId: step.turnId, approvals }, now });
  await failpoint('agent.approval.asked');
  tellAsked(work, approvals);
};

/** Requests the calls of a step, after a look at whether what was agreed to is what would run. */
export const requestApproved = async (
  work: StepContext,
  { turnId, calls }: StepOf<'request_tools'>,
  record: Record,
): Promise<void> => {
  const { services, actor } = work;
  const agreed = calls.filter(({ approval }) => approval !== null);
  if (agreed.length === 0) return record(null);
  const tools = await describe(work);
  const now = isoTime(services.clock);
  const voided = agreed.flatMap((call) => {
    const digest = digestNow(work, call, tools);
    return digest === call.approval?.digest ? [] : [{ callId: call.callId, digest }];
  });
  if (voided.length > 0) return record({ type: 'VoidApprovals', data: { turnId, voided }, now });
  const { toolRequest } = followUpContext(services, actor, actor.fold().state);
  await record({ type: 'RequestTools', data: { turnId, calls: calls.map(toolRequest) }, now });
};
