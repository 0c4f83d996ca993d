import { describe, it } from '@jest/globals';
import { specFor } from '@antiphon/testing';
import { sessionDecider } from './session.decider.js';
import type { SessionCommand } from './session-command.js';
import {
  NOW,
  TURN,
  answered,
  approvalRequested,
  approvalGranted,
  approvalOf,
  begun,
  cancelRequested,
  requested,
  started,
  toolRequested,
} from './session.examples.js';

const given = specFor(sessionDecider({ turns: 5, chars: 1_000 }));
const callId = '00000000-0000-4000-8000-000000000001';
const call = { callId, providerCallId: 'call_1', name: 'echo', input: { a: 1 } };
const before = [started(), requested(TURN), begun(TURN, 1), answered(TURN, 1, [call])];
const waiting = [...before, approvalRequested(TURN, callId)];
const { approvalId, digest } = approvalOf(callId);
const ids = { turnId: TURN, callId, approvalId };
const LATE = '2026-11-22T12:00:00.000Z';

const requestApproval: SessionCommand = {
  type: 'RequestApprovals',
  data: { turnId: TURN, approvals: [approvalOf(callId)] },
  now: NOW,
};
const answer = (decision: 'approve' | 'deny', now = NOW, reason = ''): SessionCommand => ({
  type: 'AnswerApproval',
  data: { approvalId, decision, answeredBy: 'ada', role: 'operator', reason },
  now,
});
const applyDeadlines = (now: string): SessionCommand => ({
  type: 'ApplyApprovalDeadlines',
  data: { approvalId },
  now,
});
const requestTools: SessionCommand = {
  type: 'RequestTools',
  data: { turnId: TURN, calls: [{ callId, digest: 'd', idempotencyKey: callId, idempotent: false }] },
  now: NOW,
};

describe('an approval', () => {
  it('is requested once, and not after a cancel', () => {
    given(before)
      .when(requestApproval)
      .then([approvalRequested(TURN, callId)]);
    given(waiting).when(requestApproval).thenNothing();
    given([...before, cancelRequested(TURN)])
      .when(requestApproval)
      .thenNothing();
  });

  it('is granted with edited arguments by one fact with both digests, and its call has these', () => {
    const edited = { input: { a: 2 }, digest: 'digest of the edit' };
    const edit: SessionCommand = {
      type: 'AnswerApproval',
      data: { approvalId, decision: 'approve', answeredBy: 'ada', role: 'operator', reason: '', edited },
      now: NOW,
    };
    const grant = approvalGranted(TURN, callId);
    const granted = { ...grant, data: { ...grant.data, edited } };
    given(waiting).when(edit).then([granted]);
    given([...waiting, granted])
      .when(requestTools)
      .then([toolRequested(TURN, callId, { input: { a: 2 } })]);
    for (const late of [edit, answer('approve'), answer('deny')])
      given([...waiting, granted])
        .when(late)
        .thenNothing();
  });

  it('takes one answer: later answers and deadlines change nothing', () => {
    given(waiting)
      .when(answer('approve'))
      .then([approvalGranted(TURN, callId)]);
    for (const late of [answer('approve'), answer('deny'), applyDeadlines(LATE)])
      given([...waiting, approvalGranted(TURN, callId)])
        .when(late)
        .thenNothing();
    given([...waiting, cancelRequested(TURN)])
      .when(answer('approve'))
      .thenNothing();
  });

  it('makes a denial the result of its call', () =>
    given(waiting)
      .when(answer('deny', NOW, 'no'))
      .then([
        {
          type: 'ApprovalDenied',
          schemaVersion: 2,
          data: {
            ...ids,
            ...{ digest, answeredBy: 'ada', role: 'operator', reason: 'no', answeredAt: NOW },
            cause: { kind: 'approval_denied', reason: 'no' },
          },
        },
      ]));

  it('expires after its deadline, by a timer or a late answer', () => {
    const data = { ...ids, cause: { kind: 'approval_expired', by: LATE }, expiredAt: LATE } as const;
    for (const command of [applyDeadlines(LATE), answer('approve', LATE)])
      given(waiting)
        .when(command)
        .then([{ type: 'ApprovalExpired', schemaVersion: 2, data }]);
  });

  it('escalates once, at its escalation time', () => {
    const now = '2026-11-21T12:30:00.000Z';
    const escalated = {
      type: 'ApprovalEscalated' as const,
      schemaVersion: 1 as const,
      data: { ...ids, to: 'admin' as const, escalatedAt: now },
    };
    given(waiting).when(applyDeadlines('2026-11-21T12:29:59.999Z')).thenNothing();
    given(waiting).when(applyDeadlines(now)).then([escalated]);
    given([...waiting, escalated])
      .when(applyDeadlines('2026-11-21T13:00:00.000Z'))
      .thenNothing();
  });

  it('lets its call be requested only after it was granted', () => {
    given(waiting).when(requestTools).thenNothing();
    given([...waiting, approvalGranted(TURN, callId), cancelRequested(TURN)])
      .when(requestTools)
      .thenNothing();
    given([...waiting, approvalGranted(TURN, callId)])
      .when(requestTools)
      .then([toolRequested(TURN, callId)]);
  });

  it('is voided after a change of the tool, also when it was granted', () => {
    const command: SessionCommand = {
      type: 'VoidApprovals',
      data: { turnId: TURN, voided: [{ callId, digest: 'other' }] },
      now: NOW,
    };
    const cause = { kind: 'approval_voided' } as const;
    const data = { ...ids, digest: 'other', cause, voidedAt: NOW };
    for (const history of [waiting, [...waiting, approvalGranted(TURN, callId)]])
      given(history)
        .when(command)
        .then([{ type: 'ApprovalVoided', schemaVersion: 2, data }]);
    given([...waiting, approvalGranted(TURN, callId), toolRequested(TURN, callId)])
      .when(command)
      .thenNothing();
  });
});
