import { describe, it } from '@jest/globals';
import { specFor } from '@antiphon/testing';
import { sessionDecider } from './session.decider.js';
import type { SessionCommand } from './session-command.js';
import {
  NOW,
  TURN,
  answered,
  approvalAsked,
  approvalGranted,
  approvalOf,
  begun,
  cancelAsked,
  requested,
  started,
  toolRequested,
} from './session.examples.js';

const given = specFor(sessionDecider({ turns: 5, chars: 1_000 }));
const callId = '00000000-0000-4000-8000-000000000001';
const call = { callId, providerCallId: 'call_1', name: 'echo', input: { a: 1 } };
const before = [started(), requested(TURN), begun(TURN, 1), answered(TURN, 1, [call])];
const waiting = [...before, approvalAsked(TURN, callId)];
const { approvalId, digest } = approvalOf(callId);
const ids = { turnId: TURN, callId, approvalId };
const schemaVersion = 1;
const LATE = '2026-11-22T12:00:00.000Z';

const ask: SessionCommand = {
  type: 'RequestApprovals',
  data: { turnId: TURN, approvals: [approvalOf(callId)] },
  now: NOW,
};
const answer = (decision: 'approve' | 'deny', now = NOW, reason = ''): SessionCommand => ({
  type: 'AnswerApproval',
  data: { approvalId, decision, answeredBy: 'ada', role: 'operator', reason },
  now,
});
const tend = (now: string): SessionCommand => ({ type: 'ApplyApprovalDeadlines', data: { approvalId }, now });
const request: SessionCommand = {
  type: 'RequestTools',
  data: { turnId: TURN, calls: [{ callId, digest: 'd', idempotencyKey: callId, idempotent: false }] },
  now: NOW,
};

describe('an approval', () => {
  it('is asked for once, and not in a turn that is to be cancelled', () => {
    given(before)
      .when(ask)
      .then([approvalAsked(TURN, callId)]);
    given(waiting).when(ask).thenNothing();
    given([...before, cancelAsked(TURN)])
      .when(ask)
      .thenNothing();
  });

  it('has one answer: whatever comes after it changes nothing', () => {
    given(waiting)
      .when(answer('approve'))
      .then([approvalGranted(TURN, callId)]);
    for (const late of [answer('approve'), answer('deny'), tend(LATE)])
      given([...waiting, approvalGranted(TURN, callId)])
        .when(late)
        .thenNothing();
    given([...waiting, cancelAsked(TURN)])
      .when(answer('approve'))
      .thenNothing();
  });

  it('that is denied is the result of its call', () =>
    given(waiting)
      .when(answer('deny', NOW, 'no'))
      .then([
        {
          type: 'ApprovalDenied',
          schemaVersion,
          data: {
            ...ids,
            ...{ digest, answeredBy: 'ada', role: 'operator', reason: 'no', answeredAt: NOW },
            message: 'this call was not approved: no; it was not run',
          },
        },
      ]));

  it('expires when its time is over, whoever looks then', () => {
    const message = `nobody approved this call by ${LATE}; it was not run`;
    const data = { ...ids, message, expiredAt: LATE };
    for (const command of [tend(LATE), answer('approve', LATE)])
      given(waiting)
        .when(command)
        .then([{ type: 'ApprovalExpired', schemaVersion, data }]);
  });

  it('is passed on once, when its time for that has come', () => {
    const now = '2026-11-21T12:30:00.000Z';
    const escalated = {
      type: 'ApprovalEscalated' as const,
      schemaVersion: 1 as const,
      data: { ...ids, to: 'admin' as const, escalatedAt: now },
    };
    given(waiting).when(tend('2026-11-21T12:29:59.999Z')).thenNothing();
    given(waiting).when(tend(now)).then([escalated]);
    given([...waiting, escalated])
      .when(tend('2026-11-21T13:00:00.000Z'))
      .thenNothing();
  });

  it('lets its call be requested, and nothing else does', () => {
    given(waiting).when(request).thenNothing();
    given([...waiting, approvalGranted(TURN, callId), cancelAsked(TURN)])
      .when(request)
      .thenNothing();
    given([...waiting, approvalGranted(TURN, callId)])
      .when(request)
      .then([toolRequested(TURN, callId)]);
  });

  it('of something that has changed since is void, also when it was granted', () => {
    const command: SessionCommand = {
      type: 'VoidApprovals',
      data: { turnId: TURN, voided: [{ callId, digest: 'other' }] },
      now: NOW,
    };
    const message = 'the tool has changed since this call was to be approved; it was not run';
    const data = { ...ids, digest: 'other', message, voidedAt: NOW };
    for (const history of [waiting, [...waiting, approvalGranted(TURN, callId)]])
      given(history)
        .when(command)
        .then([{ type: 'ApprovalVoided', schemaVersion, data }]);
    given([...waiting, approvalGranted(TURN, callId), toolRequested(TURN, callId)])
      .when(command)
      .thenNothing();
  });
});
