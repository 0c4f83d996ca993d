import { describe, expect, it } from '@jest/globals';
import type { SessionEvent } from '@antiphon/contracts/agent';
import {
  CALL_ID,
  SECOND,
  TURN,
  asksFor,
  callAborted,
  callCompleted,
  callStarted,
  cancelRequested,
  cleanSession,
  findingsOf,
  place,
  sessionStarted,
  onceRequested,
  toolClaimed,
  toolCompleted,
  toolDeferred,
  toolRequested,
  turnCancelled,
  turnCompleted,
  turnRequested,
  uuid,
} from '../audit-examples.spec.js';
import type { SessionCheck } from '../audit-check.js';
import { modelAttemptsAreNumbered } from './model-attempts.js';
import { leaseEpochsGrow, sessionsBeginOnce, turnsEndOnce } from './session-order.js';
import { toolCallsHaveOneOutcome } from './tool-calls.js';

const run = (check: SessionCheck, ...events: SessionEvent[]) => findingsOf(check, place(events));
const begun = [sessionStarted(), turnRequested()];
const answered = [...begun, callStarted(1), callCompleted(1)];
const asked = [...begun, callStarted(1), callCompleted(1, { toolCalls: asksFor() })];

describe('a clean session', () => {
  it.each([
    turnsEndOnce,
    toolCallsHaveOneOutcome,
    modelAttemptsAreNumbered,
    sessionsBeginOnce,
    leaseEpochsGrow,
  ])('passes $name', (check) => expect(run(check, ...cleanSession())).toEqual([]));

  it('is counted', () => {
    const counts = [turnsEndOnce, toolCallsHaveOneOutcome, modelAttemptsAreNumbered, sessionsBeginOnce].map(
      (check) => {
        const started = check.start();
        for (const event of place(cleanSession())) started.see(event);
        return started.count();
      },
    );
    expect(counts).toEqual([3, 1, 4, 1]);
  });
});

describe('turns-end-once', () => {
  it('reports a running turn as open', () =>
    expect(run(turnsEndOnce, ...begun)).toEqual([`open 2 turn ${TURN} has not ended`]));

  it.each([
    ['a second end', [...answered, turnCompleted(), turnCancelled()], `violation 6 turn ${TURN} ended twice`],
    [
      'an end without a request',
      [sessionStarted(), turnCompleted()],
      `violation 2 turn ${TURN} ended but was never accepted`,
    ],
    [
      'a turn accepted twice',
      [...begun, turnRequested(), turnCompleted()],
      `violation 3 turn ${TURN} was accepted twice`,
    ],
    [
      'work after the end',
      [...answered, turnCompleted(), callStarted(2)],
      `violation 6 ModelCallStarted of turn ${TURN} came after its end`,
    ],
    [
      'work of a turn that was not accepted',
      [sessionStarted(), callStarted(1)],
      `violation 2 ModelCallStarted names turn ${TURN}, which was not accepted`,
    ],
    [
      'a turn that overtook an earlier one',
      [
        ...begun,
        turnRequested(SECOND),
        callStarted(1, { turnId: SECOND }),
        turnCompleted(),
        turnCompleted(SECOND),
      ],
      `violation 4 ModelCallStarted of turn ${SECOND} came before the end of an earlier turn`,
    ],
    [
      'a start after a cancellation',
      [...begun, cancelRequested(), callStarted(1), turnCancelled()],
      `violation 4 ModelCallStarted of turn ${TURN} came after the request to cancel it`,
    ],
    [
      'a cancellation of an unknown turn',
      [sessionStarted(), cancelRequested()],
      `violation 2 turn ${TURN} was cancelled but never accepted`,
    ],
  ])('reports %s', (_, events, finding) => expect(run(turnsEndOnce, ...events)).toEqual([finding]));
});

describe('tool-calls-have-one-outcome', () => {
  it('accepts a retry of a try that reached no tool', () => {
    const tries = [
      toolClaimed(),
      toolDeferred('unsent'),
      toolClaimed(2),
      toolDeferred('unsent'),
      toolClaimed(3),
    ];
    expect(run(toolCallsHaveOneOutcome, ...asked, onceRequested(), ...tries, toolCompleted())).toEqual([]);
  });

  it('reports a running call as open', () =>
    expect(run(toolCallsHaveOneOutcome, ...asked, toolRequested())).toEqual([
      `open 5 tool call ${CALL_ID} has no outcome yet`,
    ]));

  it.each([
    [
      'a second outcome',
      [...asked, toolRequested(), toolCompleted(), toolCompleted()],
      `violation 7 tool call ${CALL_ID} has a second outcome`,
    ],
    [
      'an outcome without a request',
      [...asked, toolCompleted()],
      `violation 5 tool call ${CALL_ID} has an outcome and no request`,
    ],
    [
      'a call requested twice',
      [...asked, toolRequested(), toolCompleted(), toolRequested()],
      `violation 7 tool call ${CALL_ID} was requested twice`,
    ],
    [
      'a call that is in no response of a model',
      [...answered, toolRequested(), toolCompleted()],
      `violation 5 tool call ${CALL_ID} is not in the response of model attempt 1`,
    ],
    [
      'a model call before the outcome',
      [...asked, toolRequested(), callStarted(2, { step: 2 }), toolCompleted()],
      `violation 6 model attempt 2 began before tool call ${CALL_ID} had its outcome`,
    ],
    [
      'a turn that ended before the outcome',
      [...asked, toolRequested(), turnCompleted(), toolCompleted()],
      `violation 6 turn ${TURN} ended before tool call ${CALL_ID} had its outcome`,
    ],
    [
      'a call without a claim',
      [...asked, onceRequested(), toolCompleted()],
      `violation 6 tool call ${CALL_ID} was made without a claim`,
    ],
    [
      'a call that was claimed twice',
      [...asked, onceRequested(), toolClaimed(), toolClaimed(2), toolCompleted()],
      `violation 7 tool call ${CALL_ID} is claimed twice for one try`,
    ],
    [
      'a repetition of a call that may have run',
      [...asked, onceRequested(), toolClaimed(), toolDeferred('lost')],
      `violation 7 tool call ${CALL_ID} may have run, but is to be repeated`,
    ],
    [
      'more tries than the tool allows',
      [...asked, toolRequested(), ...Array.from({ length: 3 }, () => toolDeferred('lost'))],
      `violation 8 tool call ${CALL_ID} is to be made more than 3 times`,
    ],
    [
      'a claim after the outcome',
      [...asked, onceRequested(), toolClaimed(), toolCompleted(), toolClaimed(2)],
      `violation 8 tool call ${CALL_ID} is claimed without an open request`,
    ],
  ])('reports %s', (_, events, finding) =>
    expect(run(toolCallsHaveOneOutcome, ...events)).toContain(finding),
  );
});

describe('model-attempts-are-numbered', () => {
  it('reports a running attempt as open', () =>
    expect(run(modelAttemptsAreNumbered, ...begun, callStarted(1))).toEqual([
      'open 3 model attempt 1 has not ended',
    ]));

  it.each([
    ['a gap', [...begun, callStarted(2), callCompleted(2)], 'violation 3 model attempt 2 follows 0'],
    [
      'a number used twice',
      [...answered, callStarted(1, { step: 2 }), callCompleted(1, { step: 2 })],
      'violation 5 model attempt 1 follows 1',
    ],
    [
      'an attempt that began before the end of the last one',
      [...begun, callStarted(1), callStarted(2, { tryNumber: 2 }), callCompleted(2)],
      'violation 4 model attempt 1 had not ended',
    ],
    [
      'a second end',
      [...answered, callCompleted(1)],
      'violation 5 model attempt 1 ended without a start, or twice',
    ],
    [
      'an end as another call',
      [...begun, callStarted(1), callCompleted(1, { model: 'other' })],
      'violation 4 model attempt 1 ended as another call than it started',
    ],
    [
      'a retry that is numbered as a first try',
      [...begun, callStarted(1), callAborted(1), callStarted(2), callCompleted(2)],
      'violation 5 model attempt 2 is step 1, try 1; step 1, try 2 was due',
    ],
    [
      'a step that was skipped',
      [...answered, callStarted(2, { step: 3 }), callCompleted(2, { step: 3 })],
      'violation 5 model attempt 2 is step 3, try 1; step 2, try 1 was due',
    ],
    [
      'frames that do not cover the text',
      [...begun, callStarted(1), callCompleted(1, { frames: [{ kind: 'text', length: 6 }] })],
      'violation 4 the frames of model attempt 1 do not cover its text',
    ],
    [
      'a turn that ended before its attempt',
      [...begun, callStarted(1), turnCompleted(), callCompleted(1)],
      `violation 4 turn ${TURN} ended before model attempt 1`,
    ],
  ])('reports %s', (_, events, finding) =>
    expect(run(modelAttemptsAreNumbered, ...events)).toEqual([finding]),
  );
});

describe('sessions-begin-once', () => {
  it.each([
    [
      'a session that did not begin',
      [turnRequested(), turnCompleted()],
      'violation 1 TurnRequested came before SessionStarted',
    ],
    ['a session that began twice', [...begun, sessionStarted()], 'violation 3 the session began twice'],
  ])('reports %s', (_, events, finding) => expect(run(sessionsBeginOnce, ...events)).toEqual([finding]));

  it('reports a session under another name', () => {
    const [first] = place([sessionStarted()]);
    const moved = { ...first!, place: { ...first!.place, streamId: `session-${uuid(5)}` } };
    expect(findingsOf(sessionsBeginOnce, [moved])).toHaveLength(1);
  });
});

describe('lease-epochs-grow', () => {
  const under = (...epochs: (number | undefined)[]) =>
    findingsOf(
      leaseEpochsGrow,
      place(epochs.map(() => turnRequested())).map((event, i) => ({ ...event, epoch: epochs[i] })),
    );

  it('accepts drivers that follow each other', () => expect(under(1, 1, undefined, 2, 5)).toEqual([]));
  it('reports a driver that appended after its successor', () =>
    expect(under(1, 2, 1)).toEqual(['violation 3 epoch 1 appended after epoch 2']));
});
