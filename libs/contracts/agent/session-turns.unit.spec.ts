import { describe, expect, it } from '@jest/globals';
import type { SessionEvent } from './events.js';
import { deleteTurnPart, foldTurns, MAX_TURN_TEXT, type TurnEvent } from './session-turns.js';

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
    const turn = foldTurns(SESSION).get(TURN)!;
    deleteTurnPart(turn, 'message');
    deleteTurnPart(turn, 'answer');
    expect(turn).toMatchObject({ message: { text: '', isDeleted: true }, isAnswerDeleted: true, items: [] });
    expect(JSON.stringify(turn)).not.toMatch(/question|"first"|"result"/);
  });
});
