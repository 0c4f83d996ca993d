import { describe, expect, it } from '@jest/globals';
import type { LogEvent } from '@antiphon/client';
import { EMPTY, foldEvent, foldEvents, sumUsage } from './transcript.js';
import { partsOf, textLengthOf } from './turn-parts.js';

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

const ASKED = { callId, name: 'calculator', input: { e: '40 + 2' } };
const EVENTS = log(
  ['SessionStarted', { agentId: 'pilot', sessionKey: 'pilot:a:b:c', startedAt: '2026-11-23T05:00:00.000Z' }],
  ['TurnRequested', { content: 'what is 40 + 2?' }],
  ['ModelCallStarted', { model: 'm' }],
  [
    'ModelCallCompleted',
    {
      ...{ text: 'Let me see.', thought: 'A sum.', usage: { inputTokens: 3, outputTokens: 4 } },
      ...{ costMicroUsd: 5, toolCalls: [ASKED] },
    },
  ],
  ['ApprovalRequested', { ...ASKED, approvalId: 'a-1', digest: 'd', grants: ['net'], preview: '+ x' }],
  ['ApprovalGranted', { callId, answeredBy: 'key/1', answeredByName: 'Ada', reason: 'fine' }],
  ['ToolCallRequested', ASKED],
  ['ToolCallCompleted', { callId, content: '42', isError: false, durationMs: 6 }],
  [
    'ModelCallCompleted',
    { text: 'It is 42.', thought: '', usage: { inputTokens: 5, outputTokens: 6 }, costMicroUsd: 7 },
  ],
  ['TurnCompleted', { completedAt: '2026-11-23T05:00:01.000Z' }],
);

/** Returns the parts of the only turn of a session as of a position. */
const partsAt = (events: readonly LogEvent[], position: number | null = null) =>
  foldEvents(events, position).turns.flatMap(partsOf);
const notesOf = (events: readonly LogEvent[]) =>
  partsAt(events).flatMap((part) => (part.kind === 'note' ? [part.text] : []));

describe('the transcript of a session', () => {
  it('has its agent, its turns and their figures', () => {
    const { agentId, turns } = foldEvents(EVENTS, null);
    expect(agentId).toBe('pilot');
    expect(turns).toMatchObject([{ status: 'completed', model: 'm', endVersion: 10, endPosition: 100 }]);
    expect((['inputTokens', 'outputTokens', 'costMicroUsd'] as const).map((f) => sumUsage(turns, f))).toEqual(
      [8, 10, 12],
    );
  });

  it('keeps texts of any length whole, as frames have them', () => {
    const text = 'x'.repeat(100_000);
    const [turn] = foldEvents(
      log(['TurnRequested', { content: text }], ['AnswerForwarded', { text }]),
      null,
    ).turns;
    expect(turn?.message.text).toBe(text);
    expect(turn && textLengthOf(turn)).toBe(100_000);
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
});

describe('the parts of a turn', () => {
  it('are texts and tool calls in the order of the log', () => {
    expect(partsAt(EVENTS)).toMatchObject([
      { kind: 'text', text: 'Let me see.', thought: 'A sum.' },
      {
        ...{ kind: 'tool', name: 'calculator', input: { e: '40 + 2' }, status: 'completed', output: '42' },
        durationMs: 6,
        approval: {
          ...{ id: 'a-1', status: 'granted', answeredBy: 'Ada', reason: 'fine' },
          ...{ grants: ['net'], preview: '+ x' },
        },
      },
      { kind: 'text', text: 'It is 42.', thought: '' },
    ]);
  });

  it.each([
    [20, []],
    [40, ['text']],
    [50, ['text', 'pending']],
    [60, ['text', 'running']],
    [70, ['text', 'running']],
    [80, ['text', 'completed']],
    [90, ['text', 'completed', 'text']],
  ])('are as of position %d, with nothing newer', (position, expected) => {
    expect(partsAt(EVENTS, position).map((part) => (part.kind === 'tool' ? part.status : part.kind))).toEqual(
      expected,
    );
  });

  it('have tool calls in the order in which they were requested', () => {
    const toolCalls = ['first', 'second'].map((id) => ({ callId: id, name: id, input: {} }));
    const events = log(
      ['TurnRequested', {}],
      ['ModelCallCompleted', { toolCalls: [...toolCalls, { callId: 'unmade', name: 'unmade' }] }],
      ['ToolCallFailed', { callId: 'unmade', message: 'its arguments are not JSON' }],
      ['ApprovalRequested', { callId: 'second' }],
      ['ToolCallRequested', { callId: 'first' }],
      ['ToolCallCompleted', { callId: 'first', isError: true }],
      ['ApprovalDenied', { callId: 'second', message: 'no' }],
    );
    expect(partsAt(events)).toMatchObject([
      { name: 'second', status: 'denied', output: 'no' },
      { name: 'first', status: 'failed' },
    ]);
  });

  it('show the thought of an edited answer with its text only', () => {
    const call = (text: string) => ['ModelCallCompleted', { text, thought: `of ${text}` }] as const;
    const events = log(
      ['TurnRequested', {}],
      call('one'),
      call('two'),
      ['TurnCompleted', {}],
      ['ChatMessageEdited', { part: 'answer', content: 'new', at: '2026-11-23T06:00:00.000Z' }],
    );
    expect(partsAt(events)).toMatchObject([{ text: 'new', thought: 'of two' }]);
  });

  it('are none of a deleted answer', () => {
    expect(partsAt(log(['TurnRequested', {}], ['TurnFailed', {}], ['ChatMessageDeleted', {}]))).toEqual([]);
  });

  it('are the same objects until the turn changes', () => {
    const [turn] = foldEvents(EVENTS, null).turns;
    expect(turn && partsOf(turn) === partsOf(turn)).toBe(true);
  });

  // @shows U69
  it.each([
    ['length', ['The answer was cut: it reached its output limit.']],
    ['content_filter', ['The answer was cut: a filter of the provider ended it.']],
    [null, []],
  ] as [string | null, string[]][])('say why an answer ended early (%s)', (cutBy, notes) => {
    const last: LogEvent = { ...(EVENTS.at(-1) as LogEvent), data: { turnId, cutBy } };
    expect(notesOf(EVENTS.with(-1, last))).toEqual(notes);
  });

  it('say that the turn waits for its agent, and later that it waited', () => {
    const why = { kind: 'text', text: 'the agent is paused' };
    const waiting: [string, object][] = [
      ['TurnRequested', { content: 'hi' }],
      ['TurnBlocked', { code: 'AGENT.PAUSED', cause: why, until: null }],
    ];
    expect(notesOf(log(...waiting))).toEqual(['The turn waits: the agent is paused']);
    const continued = log(...waiting, ['ModelCallStarted', { model: 'm' }]);
    expect(notesOf(continued)).toEqual(['The turn waited: the agent is paused']);
  });

  it('count the messages of other agents, and have the reason of a returned answer', () => {
    const message = { from: 'a', content: 'x' };
    const events = log(
      ['TurnRequested', {}],
      ['MessagesReceived', { messages: [message, message] }],
      ['AnswerReturned', { cause: { kind: 'text', text: 'call hand_over' } }],
    );
    expect(notesOf(events)).toEqual(['2 messages of other agents', 'call hand_over']);
  });

  it.each([
    ['its text', (text: string) => ({ message: text })],
    ['a cause', (text: string) => ({ cause: { kind: 'text', text } })],
  ])('say once why a turn failed whose last model call failed for the same reason (%s)', (_, fact) => {
    const why = 'token budget exceeded';
    const events = log(
      ['TurnRequested', { content: 'go' }],
      ['ModelCallAborted', fact('overloaded')],
      ['ModelCallAborted', fact(why)],
      ['TurnFailed', { ...fact(why), code: 'BUDGET.EXCEEDED' }],
    );
    expect(notesOf(events)).toEqual(['Model call failed: overloaded', `${why} (BUDGET.EXCEEDED)`]);
  });
});
