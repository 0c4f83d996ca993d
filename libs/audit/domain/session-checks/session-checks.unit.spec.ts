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
import { leaseEpochsGrow, sessionsBeginOnce } from './session-streams.js';
import { toolCallsHaveOneOutcome } from './tool-calls.js';
import { turnsEndOnce } from './turns.js';

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
  ])('breaks nothing: $name', (check) => expect(run(check, ...cleanSession())).toEqual([]));

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

describe('turns-end-once names', () => {
  it('a turn that is still running, as open', () =>
    expect(run(turnsEndOnce, ...begun)).toEqual([`open 2 turn ${TURN} has not ended`]));

  it.each([
    ['a second end', [...answered, turnCompleted(), turnCancelled()], `violation 6 turn ${TURN} ended twice`],
    [
      'an end without a beginning',
      [sessionStarted(), turnCompleted()],
      `violation 2 turn ${TURN} ended without having been accepted`,
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
      'work of a turn that nobody accepted',
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
      `violation 4 ModelCallStarted of turn ${SECOND} came while an earlier turn was not at its end`,
    ],
    [
      'a start after a cancel',
      [...begun, cancelRequested(), callStarted(1), turnCancelled()],
      `violation 4 ModelCallStarted of turn ${TURN} came after it was asked to be cancelled`,
    ],
    [
      'a cancel of nothing',
      [sessionStarted(), cancelRequested()],
      `violation 2 turn ${TURN} was cancelled without having been accepted`,
    ],
  ])('%s', (_, events, finding) => expect(run(turnsEndOnce, ...events)).toEqual([finding]));
});

describe('tool-calls-have-one-outcome names', () => {
  it('nothing where a try that reached no tool is followed by another', () => {
    const tries = [
      toolClaimed(),
      toolDeferred('unsent'),
      toolClaimed(2),
      toolDeferred('unsent'),
      toolClaimed(3),
    ];
    expect(run(toolCallsHaveOneOutcome, ...asked, onceRequested(), ...tries, toolCompleted())).toEqual([]);
  });

  it('a call that is at work, as open', () =>
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
      'a call that no model asked for',
      [...answered, toolRequested(), toolCompleted()],
      `violation 5 tool call ${CALL_ID} was not asked for by model attempt 1`,
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
      'one that was made without a claim',
      [...asked, onceRequested(), toolCompleted()],
      `violation 6 tool call ${CALL_ID} was made without a claim`,
    ],
    [
      'one that was claimed twice',
      [...asked, onceRequested(), toolClaimed(), toolClaimed(2), toolCompleted()],
      `violation 7 tool call ${CALL_ID} is claimed twice for one try`,
    ],
    [
      'one that may have run, and is made again all the same',
      [...asked, onceRequested(), toolClaimed(), toolDeferred('lost')],
      `violation 7 tool call ${CALL_ID} may have run, and is to be made again all the same`,
    ],
    [
      'one that is made more often than its tool allows',
      [...asked, toolRequested(), ...Array.from({ length: 3 }, () => toolDeferred('lost'))],
      `violation 8 tool call ${CALL_ID} is to be made more than 3 times`,
    ],
    [
      'one that was claimed after its outcome',
      [...asked, onceRequested(), toolClaimed(), toolCompleted(), toolClaimed(2)],
      `violation 8 tool call ${CALL_ID} is claimed, but waits for no outcome`,
    ],
  ])('%s', (_, events, finding) => expect(run(toolCallsHaveOneOutcome, ...events)).toContain(finding));
});

describe('model-attempts-are-numbered names', () => {
  it('an attempt that is at work, as open', () =>
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
      'an attempt that began before the last one had ended',
      [...begun, callStarted(1), callStarted(2, { tryNumber: 2 }), callCompleted(2)],
      'violation 4 model attempt 1 had not ended',
    ],
    [
      'a second end',
      [...answered, callCompleted(1)],
      'violation 5 model attempt 1 ended without having begun, or twice',
    ],
    [
      'an end as another call',
      [...begun, callStarted(1), callCompleted(1, { model: 'other' })],
      'violation 4 model attempt 1 ended as another call than it began',
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
  ])('%s', (_, events, finding) => expect(run(modelAttemptsAreNumbered, ...events)).toEqual([finding]));
});

describe('sessions-begin-once names', () => {
  it.each([
    [
      'a session that did not begin',
      [turnRequested(), turnCompleted()],
      'violation 1 TurnRequested came before SessionStarted',
    ],
    ['a session that began twice', [...begun, sessionStarted()], 'violation 3 the session began twice'],
  ])('%s', (_, events, finding) => expect(run(sessionsBeginOnce, ...events)).toEqual([finding]));

  it('a session under another name', () => {
    const [first] = place([sessionStarted()]);
    const moved = { ...first!, place: { ...first!.place, streamId: `session-${uuid(5)}` } };
    expect(findingsOf(sessionsBeginOnce, [moved])).toHaveLength(1);
  });
});

describe('lease-epochs-grow names', () => {
  const under = (...epochs: (number | undefined)[]) =>
    findingsOf(
      leaseEpochsGrow,
      place(epochs.map(() => turnRequested())).map((event, i) => ({ ...event, epoch: epochs[i] })),
    );

  it('nothing while drivers follow each other', () => expect(under(1, 1, undefined, 2, 5)).toEqual([]));
  it('a driver that appended after its successor', () =>
    expect(under(1, 2, 1)).toEqual(['violation 3 epoch 1 appended after epoch 2']));
});
