import { describe, expect, it } from '@jest/globals';
import type { LogEvent } from '@antiphon/client';
import { EMPTY, foldEvent, foldEvents } from './transcript.js';

const turnId = 'turn-1';
const callId = 'call-1';

const log = (...facts: readonly (readonly [string, object])[]): LogEvent[] =>
  facts.map(
    ([type, data], index) =>
      ({
        type,
        data: { turnId, ...data },
        position: (index + 1) * 10,
        streamVersion: index + 1,
        eventId: `event-${index + 1}`,
        recordedAt: '2026-11-23T05:00:00.000Z',
      }) as unknown as LogEvent,
  );

const EVENTS = log(
  ['SessionStarted', { agentId: 'pilot', sessionKey: 'pilot:a:b:c', startedAt: '2026-11-23T05:00:00.000Z' }],
  ['TurnRequested', { content: 'what is 40 + 2?' }],
  ['ModelCallStarted', { model: 'm' }],
  [
    'ModelCallCompleted',
    { text: 'Let me see.', thought: '', usage: { inputTokens: 3, outputTokens: 4 }, costMicroUsd: 5 },
  ],
  [
    'ApprovalRequested',
    { callId, approvalId: 'a-1', name: 'calculator', input: { e: '40 + 2' }, digest: 'd', grants: [] },
  ],
  ['ApprovalGranted', { callId, answeredBy: 'local', reason: 'fine' }],
  ['ToolCallRequested', { callId, name: 'calculator', input: { e: '40 + 2' } }],
  ['ToolCallCompleted', { callId, content: '42', isError: false, durationMs: 6 }],
  [
    'ModelCallCompleted',
    { text: 'It is 42.', thought: '', usage: { inputTokens: 5, outputTokens: 6 }, costMicroUsd: 7 },
  ],
  ['TurnCompleted', {}],
);

describe('the transcript of a session', () => {
  it.each([
    ['length', ['The answer was cut: it reached its output limit.']],
    ['content_filter', ['The answer was cut: a filter of the provider ended it.']],
    [null, []],
  ] as [string | null, string[]][])('says why an answer ended early (%s)', (cutBy, notes) => {
    const last: LogEvent = { ...(EVENTS.at(-1) as LogEvent), data: { turnId, cutBy } };
    const [turn] = foldEvents(EVENTS.with(-1, last), null).turns;
    expect(turn?.status).toBe('completed');
    expect(turn?.parts.flatMap((part) => (part.kind === 'note' ? part.text : []))).toEqual(notes);
  });

  it('has texts and tool calls in the order of the log', () => {
    const { agentId, turns } = foldEvents(EVENTS, null);
    const [turn] = turns;
    expect(agentId).toBe('pilot');
    expect(turn?.parts.map((part) => (part.kind === 'text' ? part.text : part.kind))).toEqual([
      'Let me see.',
      'tool',
      'It is 42.',
    ]);
    expect(turn).toMatchObject({
      status: 'completed',
      endVersion: 10,
      inputTokens: 8,
      outputTokens: 10,
      costMicroUsd: 12,
    });
    expect(turn?.parts[1]).toMatchObject({
      status: 'completed',
      output: '42',
      approval: { status: 'granted', answeredBy: 'local', reason: 'fine' },
    });
  });

  it.each([
    [20, { status: 'queued', parts: [] }],
    [40, { status: 'running', parts: [{ kind: 'text' }] }],
    [55, { parts: [{ kind: 'text' }, { kind: 'tool', status: 'pending' }] }],
    [70, { parts: [{ kind: 'text' }, { kind: 'tool', status: 'running' }] }],
    [100, { status: 'completed' }],
  ])('is as of position %d, with nothing newer', (position, expected) => {
    expect(foldEvents(EVENTS, position).turns[0]).toMatchObject(expected);
  });

  it('takes an event once, however often it arrives', () => {
    const whole = foldEvents(EVENTS, null);
    expect(EVENTS.reduce(foldEvent, whole)).toBe(whole);
    expect(
      foldEvents(
        EVENTS.flatMap((event) => [event, event]),
        null,
        EMPTY,
      ),
    ).toEqual(whole);
  });

  it('has no key of an event as a key of its own objects', () => {
    const hostile = log(
      ['SessionStarted', {}],
      ['TurnRequested', JSON.parse('{"content":"x","__proto__":{"isAdmin":true}}') as object],
      ['constructor', {}],
    );
    foldEvents(hostile, null);
    expect(({} as { isAdmin?: boolean }).isAdmin).toBeUndefined();
  });

  it('says once why a turn failed whose last model call failed for the same reason', () => {
    const message = 'token budget exceeded';
    const { turns } = foldEvents(
      log(
        ['TurnRequested', { content: 'go' }],
        ['ModelCallAborted', { message: 'overloaded' }],
        ['ModelCallAborted', { message }],
        ['TurnFailed', { message, code: 'BUDGET.EXCEEDED' }],
      ),
      null,
    );
    expect(turns[0]?.parts).toMatchObject([
      { text: 'Model call failed: overloaded' },
      { text: `${message} (BUDGET.EXCEEDED)` },
    ]);
  });
});
