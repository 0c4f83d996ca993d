import { NOW, approvalOf } from '../session/session.examples.js';
import type { SessionCommand } from '../session/session-command.js';
import type { Choose } from './driver.simulation.js';
import type { FollowUpContext } from './follow-up.js';
import type { AgentPolicy, Step } from './step.js';

type StepOf<Kind extends Step['kind']> = Extract<Step, { kind: Kind }>;
type Pending = StepOf<'await_approvals'>['calls'];

const pendingOf = (calls: Pending): string[] =>
  calls.flatMap(({ approval }) => (approval?.status === 'pending' ? [approval.approvalId] : []));

/** Simulates approvers and deadlines for a simulated driver. */
export const simulateApprovals = (choose: Choose, { guarded }: AgentPolicy) => ({
  request: ({ turnId, calls }: StepOf<'request_approvals'>): SessionCommand => {
    const unapproved = calls.filter(
      ({ name, input, approval }) => approval === null && guarded.has(name, input),
    );
    const approvals = unapproved.map(({ callId }) => approvalOf(callId));
    return { type: 'RequestApprovals', data: { turnId, approvals }, now: NOW };
  },
  answer: ({ calls }: StepOf<'await_approvals'>): SessionCommand => {
    const pending = pendingOf(calls);
    const approvalId = pending[choose(pending.length)] ?? '';
    const choice = choose(6);
    if (choice === 0)
      return { type: 'ApplyApprovalDeadlines', data: { approvalId }, now: '2026-11-21T12:30:00.000Z' };
    if (choice === 1)
      return { type: 'ApplyApprovalDeadlines', data: { approvalId }, now: '2026-11-22T12:00:00.000Z' };
    const decision = choice === 2 ? 'deny' : 'approve';
    const data = { approvalId, decision, answeredBy: 'spec', role: 'operator', reason: '' } as const;
    return { type: 'AnswerApproval', data, now: NOW };
  },
  requestTools: (
    { turnId, calls }: StepOf<'request_tools'>,
    toolRequest: FollowUpContext['toolRequest'],
  ): SessionCommand => {
    if (choose(5) > 0)
      return { type: 'RequestTools', data: { turnId, calls: calls.map(toolRequest) }, now: NOW };
    const approved = calls.filter(({ approval }) => approval !== null).slice(0, 1);
    const voided = approved.map(({ callId }) => ({ callId, digest: 'other' }));
    return { type: 'VoidApprovals', data: { turnId, voided }, now: NOW };
  },
});
