import { describe, expect, it } from '@jest/globals';
import type { SessionEvent, SessionEventOf } from '@antiphon/contracts/agent';
import {
  CALL_ID,
  TIME,
  TURN,
  asksFor,
  callCompleted,
  callStarted,
  findingsOf,
  place,
  sessionStarted,
  toolCompleted,
  toolRequested,
  turnCompleted,
  turnRequested,
  uuid,
} from '../audit-examples.spec.js';
import { denialsAreOneEvent } from './denied-calls.js';

const run = (...events: SessionEvent[]) => findingsOf(denialsAreOneEvent, place(events));
const denied: SessionEvent = {
  type: 'ApprovalDenied',
  schemaVersion: 2,
  data: {
    ...{ turnId: TURN, callId: CALL_ID, approvalId: uuid(77), digest: 'd', answeredBy: 'ada' },
    ...{ role: 'operator', reason: '', answeredAt: TIME, cause: { kind: 'approval_denied', reason: '' } },
  },
};
const failed = (code: string): SessionEventOf<'ToolCallFailed'> => ({
  type: 'ToolCallFailed',
  schemaVersion: 2,
  data: {
    ...{ turnId: TURN, callId: CALL_ID, code },
    cause: { kind: 'tool_denied_by_rule', name: 'echo', rule: 1 },
  },
});
const begun = [sessionStarted(), turnRequested(), callStarted(1), callCompleted(1, { toolCalls: asksFor() })];

// @shows fault-I23
describe('denials-are-one-event', () => {
  it('accepts one denial by a person, or by a rule or a capability, before the turn continues', () => {
    expect(run(...begun, denied, callStarted(2))).toEqual([]);
    for (const code of ['TOOL.DENIED', 'TOOL.UNKNOWN', 'TOOL.CHANGED'])
      expect(run(...begun, toolRequested(), failed(code), callStarted(2))).toEqual([]);
    expect(run(...begun, toolRequested(), toolCompleted(), callStarted(2))).toEqual([]);
  });

  it('finds a denial that is recorded twice, or next to a result', () => {
    const twice = [expect.stringMatching(/denial of call .* is not its only end/)];
    expect(run(...begun, denied, denied)).toEqual(twice);
    expect(run(...begun, toolRequested(), failed('TOOL.DENIED'), toolCompleted())).toEqual(twice);
  });

  it('finds a call that is made after its denial', () =>
    expect(run(...begun, denied, toolRequested())).toEqual([expect.stringMatching(/made after its denial/)]));

  it('finds a call that is left out without an event', () => {
    const silent = [expect.stringMatching(/continues without an event that ends/)];
    expect(run(...begun, callStarted(2))).toEqual(silent);
    expect(run(...begun, turnCompleted())).toEqual(silent);
  });
});
