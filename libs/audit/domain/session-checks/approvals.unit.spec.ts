import { describe, expect, it } from '@jest/globals';
import type { ApproverRole, SessionEvent, SessionEventOf } from '@antiphon/contracts/agent';
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
const granted = (digest = 'd', role: ApproverRole = 'operator'): SessionEvent => ({
  type: 'ApprovalGranted',
  schemaVersion: 1,
  data: { ...ids, digest, answeredBy: 'key/k', answeredByName: 'ada', role, reason: '', answeredAt: TIME },
});
const escalated = (to: ApproverRole): SessionEvent => ({
  type: 'ApprovalEscalated',
  schemaVersion: 1,
  data: { ...ids, to, escalatedAt: TIME },
});
const expired: SessionEvent = {
  type: 'ApprovalExpired',
  schemaVersion: 2,
  data: { ...ids, cause: { kind: 'text', text: 'late' }, expiredAt: TIME },
};
const begun = [sessionStarted(), turnRequested(), callStarted(1), callCompleted(1, { toolCalls: asksFor() })];

describe('approvals-precede-calls', () => {
  it('accepts a call after its grant', () =>
    expect(run(...begun, asked, granted(), wanted, made)).toEqual([]));

  it('accepts a call with the edited arguments of its grant, and no other', () => {
    const edit = { input: { other: 1 }, digest: 'e' };
    const grant = granted() as SessionEventOf<'ApprovalGranted'>;
    const edited: SessionEvent = { ...grant, data: { ...grant.data, edited: edit } };
    const call: SessionEvent = { ...wanted, data: { ...wanted.data, input: edit.input } };
    expect(run(...begun, asked, edited, call, made)).toEqual([]);
    expect(run(...begun, asked, edited, wanted)).toEqual([expect.stringMatching(/not the one/)]);
    const same: SessionEvent = { ...grant, data: { ...grant.data, edited: { ...edit, digest: 'd' } } };
    expect(run(...begun, asked, same)).toEqual([expect.stringMatching(/digest of its request/)]);
  });

  it('accepts a grant by a higher role, and by the role of an escalation', () => {
    expect(run(...begun, asked, granted('d', 'admin'), wanted, made)).toEqual([]);
    expect(run(...begun, asked, escalated('member'), granted('d', 'member'), wanted, made)).toEqual([]);
  });

  it.each<[string, SessionEvent[], string]>([
    ['a call before its grant', [asked, wanted], `call ${CALL_ID} was requested without its approval`],
    [
      'a call after an expiry',
      [asked, expired, wanted],
      `call ${CALL_ID} was requested without its approval`,
    ],
    [
      'a grant by a role below the required one',
      [asked, granted('d', 'member')],
      'takes the role operator, and key/k answered it as member',
    ],
    [
      'a grant by a low role after an escalation to a higher one',
      [asked, escalated('admin'), granted('d', 'member')],
      'takes the role operator',
    ],
    ['a second response', [asked, granted(), expired], 'which is closed'],
    ['a response without a request', [granted()], 'which was not requested'],
    ['a grant of another digest', [asked, granted('other')], 'for another digest'],
    [
      'a response after a cancellation',
      [asked, cancelRequested(), granted()],
      'after the cancellation of its turn',
    ],
    [
      'another call',
      [asked, granted(), { ...wanted, data: { ...wanted.data, name: 'rm' } }],
      'is not the one',
    ],
    [
      'another module',
      [asked, granted(), wanted, { ...made, data: { ...made.data, moduleDigest: 'x' } }],
      'in another module',
    ],
    ['a pending approval', [asked], 'is pending'],
  ])('reports %s', (_, events, finding) =>
    expect(JSON.stringify(run(...begun, ...events))).toContain(finding),
  );
});
