import type { ApprovalEvent, ApproverRole, SessionEvent, SessionEventOf } from '@antiphon/contracts/agent';
import { type CheckRun, type EventPlace, type Finding, isTurnEnd, open, violation } from '../audit-check.js';
import type { Parsed, SessionCheck } from '../audit-check.js';

interface Approval {
  readonly at: EventPlace;
  readonly turnId: string;
  readonly callId: string;
  readonly name: string;
  /** Arguments that the call is made with: the requested ones, or those of an edited grant. */
  input: string;
  readonly digest: string;
  readonly moduleDigest: string;
  /** Least privileged role that may answer. An escalation may lower it. */
  least: ApproverRole;
  status: 'pending' | 'granted' | 'closed';
}

type ApprovalResponse = Exclude<ApprovalEvent, { type: 'ApprovalRequested' }>;

type ApprovalGrant = Extract<ApprovalEvent, { type: 'ApprovalGranted' }>;

type ApprovalAnswer = Extract<ApprovalEvent, { type: 'ApprovalGranted' | 'ApprovalDenied' }>;

const isApproval = (event: SessionEvent): event is ApprovalEvent => event.type.startsWith('Approval');

const RANKS: Readonly<Record<ApproverRole, number>> = { member: 0, operator: 1, admin: 2 };

/** Returns the violation of an answer by a role below the one that the approval requires. */
const checkRole = ({ data }: ApprovalAnswer, { least }: Approval, at: EventPlace): Finding[] =>
  RANKS[data.role] >= RANKS[least]
    ? []
    : [
        violation(
          at,
          `approval ${data.approvalId} takes the role ${least}, and ${data.answeredBy} answered it as ${data.role}`,
        ),
      ];

class ApprovalRun implements CheckRun<Parsed<SessionEvent>> {
  private readonly byCall = new Map<string, Approval>();
  private readonly cancelledTurns = new Set<string>();

  see({ place: at, content: event }: Parsed<SessionEvent>): Finding[] {
    if (isApproval(event))
      return event.type === 'ApprovalRequested' ? this.requestApproval(event, at) : this.respond(event, at);
    if (event.type === 'TurnCancelRequested') this.cancelledTurns.add(event.data.turnId);
    if (event.type === 'ToolCallRequested') return this.requestCall(event, at);
    if (event.type === 'ToolCallCompleted') return this.completeCall(event, at);
    if (isTurnEnd(event.type)) this.endTurn((event.data as { turnId: string }).turnId);
    return [];
  }

  end(): Finding[] {
    return [...this.byCall.values()]
      .filter(({ status }) => status === 'pending')
      .map(({ at, callId }) => open(at, `the approval of call ${callId} is pending`));
  }

  count(): number {
    return this.byCall.size;
  }

  private requestApproval({ data }: SessionEventOf<'ApprovalRequested'>, at: EventPlace): Finding[] {
    const { turnId, callId, name, digest, moduleDigest, answerBy: least } = data;
    if (this.byCall.has(callId)) return [violation(at, `the approval of call ${callId} was requested twice`)];
    const input = JSON.stringify(data.input);
    const call = { turnId, callId, name, input, digest, moduleDigest };
    this.byCall.set(callId, { at, ...call, least, status: 'pending' });
    return [];
  }

  private respond(event: ApprovalResponse, at: EventPlace): Finding[] {
    const { approvalId, callId } = event.data;
    const approval = this.byCall.get(callId);
    if (!approval) return [violation(at, `${event.type} of approval ${approvalId}, which was not requested`)];
    const isVoided = event.type === 'ApprovalVoided' && approval.status === 'granted';
    if (approval.status !== 'pending' && !isVoided)
      return [violation(at, `${event.type} of approval ${approvalId}, which is closed`)];
    if (this.cancelledTurns.has(approval.turnId))
      return [violation(at, `${event.type} of approval ${approvalId} after the cancellation of its turn`)];
    if (event.type === 'ApprovalEscalated') {
      if (RANKS[event.data.to] < RANKS[approval.least]) approval.least = event.data.to;
      return [];
    }
    approval.status = event.type === 'ApprovalGranted' ? 'granted' : 'closed';
    if (event.type !== 'ApprovalGranted' && event.type !== 'ApprovalDenied') return [];
    const granted = event.type === 'ApprovalGranted' ? this.grant(event, approval, at) : [];
    return granted.length > 0 ? granted : checkRole(event, approval, at);
  }

  /** Checks both digests of a grant. A call is made with its edited arguments from then on. */
  private grant({ data }: ApprovalGrant, approval: Approval, at: EventPlace): Finding[] {
    const { approvalId, digest, edited } = data;
    if (digest !== approval.digest)
      return [violation(at, `approval ${approvalId} was granted for another digest than requested`)];
    if (edited?.digest === digest)
      return [violation(at, `approval ${approvalId} has the digest of its request for edited arguments`)];
    if (edited) approval.input = JSON.stringify(edited.input);
    return [];
  }

  private requestCall({ data }: SessionEventOf<'ToolCallRequested'>, at: EventPlace): Finding[] {
    const approval = this.byCall.get(data.callId);
    if (!approval) return [];
    if (approval.status !== 'granted')
      return [violation(at, `call ${data.callId} was requested without its approval`)];
    return approval.name === data.name && approval.input === JSON.stringify(data.input)
      ? []
      : [violation(at, `call ${data.callId} is not the one that was approved`)];
  }

  private completeCall({ data }: SessionEventOf<'ToolCallCompleted'>, at: EventPlace): Finding[] {
    const approval = this.byCall.get(data.callId);
    return !approval || approval.moduleDigest === data.moduleDigest
      ? []
      : [violation(at, `call ${data.callId} ran in another module than was approved`)];
  }

  private endTurn(turnId: string): void {
    for (const approval of this.byCall.values()) if (approval.turnId === turnId) approval.status = 'closed';
  }
}

/** Checks that a call that needs an approval is made after its one grant and as it was approved. */
export const approvalsPrecedeCalls: SessionCheck = {
  name: 'approvals-precede-calls',
  about:
    'a tool call that needed an approval is made only after one response granted it, with the same digest and module, ' +
    'by a role that the approval allows',
  counts: 'approvals',
  start: () => new ApprovalRun(),
};
