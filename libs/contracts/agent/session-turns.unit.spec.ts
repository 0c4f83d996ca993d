import { describe, expect, it } from '@jest/globals';
import type { SessionEvent } from './events.js';
import {
  deleteTurnPart,
  foldTurn,
  foldTurns,
  MAX_TURN_TEXT,
  SessionTurn,
  type TurnEvent,
} from './session-turns.js';

const TURN = '0199aa00-0000-7000-8000-000000000001';
const NEXT = '0199aa00-0000-7000-8000-000000000002';
const CALL = '0199aa00-0000-7000-8000-00000000000a';
const APPROVAL = '0199aa00-0000-7000-8000-00000000000b';
const at = '2026-11-22T10:00:00.000Z';

const events = (...list: [type: string, data: object][]): TurnEvent[] =>
  list.map(([type, data], index) => ({
    event: { type, schemaVersion: 1, data: { turnId: TURN, ...data } } as unknown as SessionEvent,
    version: index + 2,
    position: 100 + index,
  }));
const completed = (text: string, toolCalls: object[] = []) =>
  [
    'ModelCallCompleted',
    {
      ...{ text, thought: '', toolCalls, provider: 'p', model: 'm', costMicroUsd: 7 },
      usage: { inputTokens: 3, outputTokens: 2, estimated: false },
    },
  ] as [string, object];

const SESSION = events(
  ['TurnRequested', { content: 'question', requestedAt: at }],
  ['ModelCallStarted', {}],
  completed('first', [{ callId: CALL, name: 'echo', input: { a: 1 } }]),
  ['ToolCallRequested', { callId: CALL }],
  [
    'ApprovalRequested',
    { callId: CALL, approvalId: APPROVAL, answerBy: 'operator', digest: 'd', expiresAt: at, requestedAt: at },
  ],
  ['TurnRequested', { turnId: NEXT, content: 'waits', requestedAt: at }],
  ['ApprovalGranted', { callId: CALL, approvalId: APPROVAL, answeredBy: 'key/k', reason: 'fine' }],
  ['ToolCallCompleted', { callId: CALL, content: 'result', isError: false, durationMs: 4 }],
  [
    'ModelCallAborted',
    { reason: 'provider_error', cause: { kind: 'text', text: 'lost' }, text: 'void', usage: null },
  ],
  completed('second'),
  ['TurnCompleted', { completedAt: at }],
);

describe('the turns of a session', () => {
  it('have texts and tool calls in the order of the log, with approvals, usage and places', () => {
    const [turn, next] = [...foldTurns(SESSION).values()];
    expect(turn).toMatchObject({
      ...{ status: 'completed', endedAt: at, firstVersion: 2, lastVersion: 12 },
      ...{ firstPosition: 100, lastPosition: 110 },
      message: { text: 'question', length: 8, position: 100 },
      usage: { calls: 2, inputTokens: 6, outputTokens: 4, costMicroUsd: 14 },
    });
    expect(turn?.items).toMatchObject([
      { kind: 'text', text: 'first', position: 102 },
      {
        ...{ kind: 'tool', name: 'echo', status: 'completed', isError: false, durationMs: 4 },
        ...{ result: { text: 'result' }, position: 102, endPosition: 107 },
        approval: { id: APPROVAL, status: 'granted', answeredBy: 'key/k', reason: 'fine', position: 104 },
      },
      { kind: 'aborted', reason: 'provider_error', text: 'void' },
      { kind: 'text', text: 'second', position: 109 },
    ]);
    expect(next).toMatchObject({ turnId: NEXT, status: 'queued', items: [] });
  });

  it('are the same when events are folded one by one', () => {
    const turns = new Map();
    for (const one of SESSION) foldTurns([one], turns);
    expect(turns).toEqual(foldTurns(SESSION));
  });

  it('show each state in its turn, and never more than happened', () => {
    const upTo = (count: number) => foldTurns(SESSION.slice(0, count)).get(TURN);
    expect(upTo(1)).toMatchObject({ status: 'queued', items: [] });
    expect(upTo(2)?.status).toBe('running');
    expect(upTo(5)?.items[1]).toMatchObject({
      status: 'running',
      result: null,
      approval: { status: 'pending' },
    });
  });

  it('cut long texts and name their length', () => {
    const long = foldTurns(events(['TurnRequested', { content: 'x'.repeat(100_000), requestedAt: at }]));
    expect(long.get(TURN)?.message).toMatchObject({ text: 'x'.repeat(MAX_TURN_TEXT), length: 100_000 });
  });

  it('lose a deleted message, and an answer with its calls', () => {
    const turn = deleteTurnPart(deleteTurnPart(foldTurns(SESSION).get(TURN)!, 'message'), 'answer');
    expect(turn).toMatchObject({ message: { text: '', isDeleted: true }, isAnswerDeleted: true, items: [] });
    expect(JSON.stringify(turn)).not.toMatch(/question|"first"|"result"/);
    expect(deleteTurnPart(turn, 'answer')).toBe(turn);
  });

  it('are as the API describes them', () => {
    for (const turn of foldTurns(SESSION).values()) expect(SessionTurn.strict().parse(turn)).toEqual(turn);
  });
});

type Fact = [type: string, data: object];

/** Given facts of a turn, when one more is folded, then the turn has the fields. */
const given = (...before: Fact[]) => ({
  when: (...fact: Fact) => ({
    then: (expected: object) => {
      const facts = events(['TurnRequested', { content: 'question', requestedAt: at }], ...before, fact);
      const turns = facts.reduce<SessionTurn | undefined>((turn, one) => foldTurn(turn, one), undefined);
      expect(turns).toMatchObject(expected);
    },
  }),
});

const asked = (callId = CALL) => completed('', [{ callId, name: 'echo', input: {} }]);
const cause = { kind: 'text', text: 'why' };
const call = (expected: object) => ({ items: [{ kind: 'tool', ...expected }] });
const approved: Fact = [
  'ApprovalRequested',
  { callId: CALL, approvalId: APPROVAL, answerBy: 'operator', digest: 'd', expiresAt: at, grants: ['net'] },
];

describe('a turn', () => {
  it('has the model of its newest call', () =>
    given(completed('one'))
      .when('ModelCallStarted', { model: 'next' })
      .then({
        ...{ status: 'running', model: 'next' },
      }));

  it('keeps the text of a cancelled call as its answer, with its usage', () =>
    given(['ModelCallStarted', { model: 'm' }])
      .when('ModelCallAborted', {
        ...{ reason: 'cancelled', cause, text: 'half', provider: 'p', model: 'm' },
        usage: { inputTokens: 3, outputTokens: 1 },
      })
      .then({
        items: [{ kind: 'text', text: 'half' }],
        usage: { calls: 1, inputTokens: 3, outputTokens: 1, costMicroUsd: 0 },
      }));

  it('has a call that is asked for, before anything requests it', () =>
    given()
      .when(...asked())
      .then(call({ status: 'asked', requestPosition: null, endPosition: null })));

  it('has the position of the first request of a call', () =>
    given(asked(), approved, ['ApprovalGranted', { callId: CALL }])
      .when('ToolCallRequested', { callId: CALL })
      .then(call({ status: 'running', requestPosition: 102 })));

  it('has the grants and the preview of an approval', () =>
    given(asked())
      .when(approved[0], { ...approved[1], preview: '+ line' })
      .then(call({ approval: { status: 'pending', grants: ['net'], preview: '+ line' } })));

  it('names the key that decided an approval', () =>
    given(asked(), approved)
      .when('ApprovalDenied', {
        ...{ callId: CALL, answeredBy: 'key/k', answeredByName: 'Ada', reason: 'no', cause },
      })
      .then(
        call({
          ...{ status: 'failed', isError: true, result: { text: 'why' }, endPosition: 103 },
          approval: { status: 'denied', answeredBy: 'key/k', answeredByName: 'Ada', reason: 'no' },
        }),
      ));

  it.each([
    ['ApprovalExpired', 'expired'],
    ['ApprovalVoided', 'voided'],
  ])('ends a call whose approval lapses (%s)', (type, status) =>
    given(asked(), approved)
      .when(type, { callId: CALL, cause })
      .then(call({ status: 'failed', result: { text: 'why' }, approval: { status, reason: 'why' } })),
  );

  it('does not know the outcome of a call that may have acted', () =>
    given(asked())
      .when('ToolCallUnknown', { callId: CALL, cause })
      .then(call({ status: 'unknown', isError: true, result: { text: 'why' } })));

  it('reads the text of a fact of the first schema version', () =>
    given(asked())
      .when('ToolCallFailed', { callId: CALL, message: 'an old text' })
      .then(call({ status: 'failed', result: { text: 'an old text' } })));

  it('has each message of other agents', () =>
    given()
      .when('MessagesReceived', {
        messages: [
          { from: 'a', content: 'x' },
          { from: 'b', content: { y: 1 } },
        ],
      })
      .then({
        items: [
          { kind: 'received', from: 'a', text: '"x"' },
          { kind: 'received', from: 'b', text: '{"y":1}' },
        ],
      }));

  it('has the answer of the agent that got it', () =>
    given()
      .when('AnswerForwarded', { agentId: 'b', text: 'done' })
      .then({ items: [{ kind: 'text', text: 'done', provider: 'agent', model: 'b' }] }));

  it('has the reason of a returned answer', () =>
    given(completed('I hand over'))
      .when('AnswerReturned', { cause })
      .then({ items: [{ kind: 'text' }, { kind: 'returned', text: 'why', length: 3 }] }));

  const blocked = (text: string, until: string | null = null): Fact => [
    'TurnBlocked',
    { code: 'AGENT.PAUSED', cause: { kind: 'text', text }, until, blockedAt: at },
  ];
  const waited = { kind: 'blocked', code: 'AGENT.PAUSED', until: null };

  it('has the newest reason of a wait', () =>
    given(blocked('first'))
      .when(...blocked('second', at))
      .then({ status: 'queued', items: [{ ...waited, text: 'second', until: at, isOver: false }] }));

  it('has the reasons of waits that are over', () =>
    given(blocked('first'), ['ModelCallStarted', {}], completed('one'), blocked('second'))
      .when('TurnCancelled', { cancelledAt: at })
      .then({
        items: [
          { ...waited, text: 'first', isOver: true },
          { kind: 'text' },
          { ...waited, text: 'second', isOver: true },
        ],
      }));

  it.each<[Fact, object]>([
    [['TurnCompleted', { completedAt: at, cutBy: 'length' }], { status: 'completed', cutBy: 'length' }],
    [
      ['TurnFailed', { failedAt: at, code: 'X.Y', cause }],
      { status: 'failed', error: { code: 'X.Y', message: 'why' } },
    ],
    [['TurnCancelled', { cancelledAt: at }], { status: 'cancelled' }],
  ])('ends with %j', (fact, expected) =>
    given(completed('one'))
      .when(...fact)
      .then({ ...expected, endedAt: at, endVersion: 4, endPosition: 102, lastPosition: 102 }),
  );

  it('keeps its end where a message is edited later', () =>
    given(completed('one'), ['TurnCompleted', { completedAt: at }])
      .when('ChatMessageEdited', { part: 'message', content: 'asked again', at })
      .then({
        message: { text: 'asked again', length: 11, editedAt: at },
        ...{ answerEditedAt: null, endVersion: 4, lastVersion: 5 },
      }));

  it('has an edited answer in the place of all its texts', () =>
    given(completed('one'), completed('two'), ['TurnCompleted', { completedAt: at }])
      .when('ChatMessageEdited', { part: 'answer', content: 'three', at })
      .then({ items: [{ kind: 'text', text: 'three', length: 5, position: 102 }], answerEditedAt: at }));

  it('stays the same object for events of another turn', () => {
    const turn = foldTurns(SESSION).get(TURN);
    const other = events(['TurnCancelled', { turnId: NEXT, cancelledAt: at }])[0] as TurnEvent;
    expect(foldTurn(turn, other)).toBe(turn);
    expect(foldTurn(undefined, other)).toBeUndefined();
  });
});
