import { describe, expect, it } from '@jest/globals';
import type { SessionEvent, SessionEventOf } from '@antiphon/contracts/agent';
import {
  CALL_ID,
  TIME,
  TURN,
  asksFor,
  callCompleted,
  callStarted,
  cancelRequested,
  findingsOf,
  place,
  sessionStarted,
  toolCompleted,
  toolRequested,
  turnRequested,
  uuid,
} from '../audit-examples.spec.js';
import { approvalsPrecedeCalls } from './approvals.js';

const run = (...events: SessionEvent[]) => findingsOf(approvalsPrecedeCalls, place(events));
const wanted = toolRequested() as SessionEventOf<'ToolCallRequested'>;
const made = toolCompleted() as SessionEventOf<'ToolCallCompleted'>;
const ids = { turnId: TURN, callId: CALL_ID, approvalId: uuid(77) };
const { name, input } = wanted.data;
const { moduleDigest } = made.data;
const asked: SessionEvent = {
  type: 'ApprovalRequested',
  schemaVersion: 1,
  data: {
    ...{ ...ids, name, input, moduleDigest, grants: [], digest: 'd', answerBy: 'operator' },
    ...{ requestedAt: TIME, expiresAt: TIME, escalateAt: null, escalateTo: null },
  },
};
const granted = (digest = 'd'): SessionEvent => ({
  type: 'ApprovalGranted',
  schemaVersion: 1,
  data: { ...ids, digest, answeredBy: 'ada', role: 'operator', reason: '', answeredAt: TIME },
});
const expired: SessionEvent = {
  type: 'ApprovalExpired',
  schemaVersion: 1,
  data: { ...ids, message: 'late', expiredAt: TIME },
};
const begun = [sessionStarted(), turnRequested(), callStarted(1), callCompleted(1, { toolCalls: asksFor() })];

describe('approvals', () => {
  it('that were granted before their call break nothing', () =>
    expect(run(...begun, asked, granted(), wanted, made)).toEqual([]));

  it.each<[string, SessionEvent[], string]>([
    ['a call without its answer', [asked, wanted], `call ${CALL_ID} was requested without the approval`],
    [
      'a call after a refusal',
      [asked, expired, wanted],
      `call ${CALL_ID} was requested without the approval`,
    ],
    ['a second answer', [asked, granted(), expired], 'which is closed'],
    ['an answer that nobody asked for', [granted()], 'which nobody asked for'],
    ['a grant of something else', [asked, granted('other')], 'for another digest'],
    ['an answer after a cancel', [asked, cancelRequested(), granted()], 'after its turn was to be cancelled'],
    [
      'another call',
      [asked, granted(), { ...wanted, data: { ...wanted.data, name: 'rm' } }],
      'is not the one',
    ],
    [
      'another module',
      [asked, granted(), wanted, { ...made, data: { ...made.data, moduleDigest: 'x' } }],
      'by another module',
    ],
    ['one that nobody has answered', [asked], 'nobody has answered'],
  ])('show %s', (_, events, finding) => expect(JSON.stringify(run(...begun, ...events))).toContain(finding));
});
