import { describe, expect, it } from '@jest/globals';
import type { SessionEvent, SessionEventOf } from '@antiphon/contracts/agent';
import { fold } from '@antiphon/kernel';
import { specFor } from '@antiphon/testing';
import { MAX_QUEUED_TURNS, sessionDecider } from './session.decider.js';
import {
  ANSWER,
  NOW,
  TURN,
  answered,
  begun,
  cancelRequested,
  outcome,
  requested,
  started,
  toolAnswered,
  toolClaimed,
  toolRequested,
} from './session.examples.js';

const decider = sessionDecider({ turns: 5, chars: 10_000 });
const given = specFor(decider);
const callId = '00000000-0000-4000-8000-0000000000c1';

describe('a session', () => {
  it('rejects a second start', () =>
    given([started()])
      .when({ type: 'StartSession', data: started().data, now: NOW })
      .thenRejects('SESSION.STARTED'));

  it('rejects a turn before it has started', () =>
    given([])
      .when({ type: 'RequestTurn', data: { turnId: TURN, content: 'hi' }, now: NOW })
      .thenRejects('SESSION.NOT_STARTED'));

  it('queues a turn behind another one', () =>
    given([started(), requested('t-1')])
      .when({ type: 'RequestTurn', data: { turnId: 't-2', content: 'and then?' }, now: NOW })
      .then([requested('t-2', 'and then?')]));

  it('rejects a turn when the queue is full', () =>
    given([started(), ...Array.from({ length: MAX_QUEUED_TURNS + 1 }, (_, index) => requested(`t-${index}`))])
      .when({ type: 'RequestTurn', data: { turnId: 'one-more', content: 'hi' }, now: NOW })
      .thenRejects('SESSION.QUEUE_FULL'));
});

describe('a model call', () => {
  const begin = {
    type: 'BeginModelCall',
    data: { turnId: TURN, step: 1, tryNumber: 1, provider: 'p', model: 'm', reservationId: 'r' },
    now: NOW,
  } as const;

  it('takes the next attempt of the session', () =>
    given([started(), requested('t-0'), begun('t-0', 1), answered('t-0', 1), ended('t-0'), requested(TURN)])
      .when(begin)
      .then([begun(TURN, 2, { provider: 'p', model: 'm', reservationId: 'r' })]));

  it('does not start while another one is open', () =>
    given([started(), requested(TURN), begun(TURN, 1)])
      .when(begin)
      .thenNothing());

  it('does not start after a cancel', () =>
    given([started(), requested(TURN), cancelRequested(TURN)])
      .when(begin)
      .thenNothing());

  it('ends a tool call that cannot be made in the same append', () => {
    const toolCalls = [
      { callId, providerCallId: 'a', name: 'rm', input: {}, problem: 'not_json' as const },
      { callId: TURN, providerCallId: 'b', name: 'echo', input: {} },
    ];
    const [, failed, ...more] = decider.decide(
      { type: 'RecordAnswer', data: { attempt: 1, ...ANSWER, toolCalls }, now: NOW },
      fold(decider.evolve, decider.initialState(), [started(), requested(TURN), begun(TURN, 1)]),
    );
    expect(more).toEqual([]);
    expect(failed).toMatchObject({
      type: 'ToolCallFailed',
      data: {
        turnId: TURN,
        callId,
        code: 'TOOL.UNUSABLE_CALL',
        cause: { kind: 'tool_call_unusable', problem: 'not_json' },
      },
    });
  });

  it('records its answer once', () => {
    given([started(), requested(TURN), begun(TURN, 1)])
      .when({ type: 'RecordAnswer', data: { attempt: 1, ...ANSWER }, now: NOW })
      .then([answered(TURN, 1)]);
    given([started(), requested(TURN), begun(TURN, 1), answered(TURN, 1)])
      .when({ type: 'RecordAnswer', data: { attempt: 1, ...ANSWER }, now: NOW })
      .thenNothing();
  });

  it('ignores an answer to an abandoned attempt', () =>
    given([started(), requested(TURN), begun(TURN, 1)])
      .when({ type: 'RecordAnswer', data: { attempt: 2, ...ANSWER }, now: NOW })
      .thenNothing());
});

describe('a tool call', () => {
  const asked = answered(TURN, 1, [{ callId, providerCallId: 'call_1', name: 'echo', input: { a: 1 } }]);
  const history = [started(), requested(TURN), begun(TURN, 1), asked];

  it('is requested with the name and input from the model', () =>
    given(history)
      .when({
        type: 'RequestTools',
        data: { turnId: TURN, calls: [{ callId, digest: 'd', idempotencyKey: 'k', idempotent: true }] },
        now: NOW,
      })
      .then([toolRequested(TURN, callId, { digest: 'd', idempotencyKey: 'k', idempotent: true })]));

  it('is claimed once, and not after a cancel', () => {
    const claim = { type: 'ClaimTools', data: { turnId: TURN, callIds: [callId] }, now: NOW } as const;
    const before = [...history, toolRequested(TURN, callId)];
    given(before)
      .when(claim)
      .then([toolClaimed(TURN, callId)]);
    given([...before, toolClaimed(TURN, callId)])
      .when(claim)
      .thenNothing();
    given([...before, cancelRequested(TURN)])
      .when(claim)
      .thenNothing();
    given([...before, toolAnswered(TURN, callId, 'x')])
      .when(claim)
      .thenNothing();
  });

  it('has exactly one outcome, even if two arrive together', () =>
    given([...history, toolRequested(TURN, callId)])
      .when({
        type: 'RecordToolOutcomes',
        data: { outcomes: [outcome(TURN, callId, 'first'), outcome(TURN, callId, 'second')] },
        now: NOW,
      })
      .then([toolAnswered(TURN, callId, 'first')]));

  it('has no outcome without a request', () =>
    given(history)
      .when({ type: 'RecordToolOutcomes', data: { outcomes: [outcome(TURN, callId, 'early')] }, now: NOW })
      .thenNothing());
});

describe('a cancel', () => {
  const cancel = (turnId?: string) =>
    ({ type: 'CancelTurns', data: turnId === undefined ? {} : { turnId }, now: NOW }) as const;
  const history = [started(), requested('t-1'), requested('t-2'), requested('t-3')];

  it('reaches the open turn and every queued one', () =>
    given(history)
      .when(cancel())
      .then([cancelRequested('t-1'), cancelRequested('t-2'), cancelRequested('t-3')]));

  it('reaches one turn alone', () =>
    given(history)
      .when(cancel('t-2'))
      .then([cancelRequested('t-2')]));

  it('adds nothing the second time, or after the end', () => {
    given([...history, cancelRequested('t-1')])
      .when(cancel('t-1'))
      .thenNothing();
    given([started(), requested('t-1'), ended('t-1')])
      .when(cancel('t-1'))
      .thenNothing();
  });
});

describe('the recent turns of a fold', () => {
  const turn = (id: string, text: string): SessionEvent[] => [
    requested(id, `about ${id}`),
    begun(id, Number(id)),
    answered(id, Number(id), [], text),
    ended(id),
  ];
  const recentOf = (events: SessionEvent[]) =>
    fold(decider.evolve, decider.initialState(), [started(), ...events]).recent;

  it.each([
    [4, 1],
    [7, 1],
    [8, 4],
    [10, 4],
    [11, 7],
  ])('are at least the last turns of the window, which moves in steps: of %d, from %d', (count, first) => {
    const events = Array.from({ length: count }, (_, index) => turn(String(index + 1), 'ok')).flat();
    const recent = recentOf(events).map(({ turnId }) => Number(turnId));
    expect([recent[0], recent.at(-1)]).toEqual([first, count]);
  });

  it('are limited in characters; the last turn is clipped instead of dropped', () => {
    const recent = recentOf([...turn('1', 'x'), ...turn('2', 'y'.repeat(50_000))]);
    expect(recent.map(({ turnId }) => turnId)).toEqual(['2']);
    expect(recent[0]?.steps[0]?.text).toMatch(/^y{10000}… \[clipped: 10000 of 50000 characters\]$/);
  });

  it('exclude a turn without content', () =>
    expect(recentOf([requested('1'), begun('1', 1), failed('1')])).toEqual([]));
});

const ended = (turnId: string): SessionEventOf<'TurnCompleted'> => ({
  type: 'TurnCompleted',
  schemaVersion: 1,
  data: { turnId, completedAt: NOW },
});
const UNREACHABLE = { kind: 'text', text: 'provider unreachable' } as const;
const failed = (turnId: string): SessionEventOf<'TurnFailed'> => ({
  type: 'TurnFailed',
  schemaVersion: 2,
  data: { turnId, code: 'PROVIDER.UNREACHABLE', cause: UNREACHABLE, failedAt: NOW },
});
