import { describe, expect, it } from '@jest/globals';
import type { LogEvent } from '@antiphon/client';
import { explainTurn, findFocus, traceIdOf } from './why.js';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const metadata = { correlationId: 'request-1', traceparent: `00-${TRACE}-b7ad6b7169203331-01` };
const log = (...facts: readonly (readonly [string, object])[]): LogEvent[] =>
  facts.map(
    ([type, data], index) =>
      ({
        ...{ type, data, metadata, position: (index + 1) * 10, streamVersion: index + 1 },
        recordedAt: '2026-11-23T05:00:00.000Z',
      }) as unknown as LogEvent,
  );
const turnId = 't';
const call = { turnId, attempt: 1, step: 1, provider: 'p', model: 'm' };

describe('why a turn answered as it did', () => {
  const explained = explainTurn(
    log(
      ['ChatFileAttached', { path: 'tides.md' }],
      ['TurnRequested', { turnId, content: 'hi' }],
      ['ModelCallStarted', { ...call, startedAt: '2026-11-23T05:00:00.000Z' }],
      ['TurnRequested', { turnId: 'other', content: 'later' }],
      [
        'ModelCallCompleted',
        {
          ...call,
          ...{ usage: { inputTokens: 3, outputTokens: 4 }, costMicroUsd: 5 },
          completedAt: '2026-11-23T05:00:01.500Z',
        },
      ],
      ['ToolCallRequested', { turnId, callId: 'c', name: 'read', input: { path: 'notes.md' } }],
      ['ToolCallRequested', { turnId, callId: 'w', name: 'write', input: { path: 'plan.md' } }],
      ['ToolCallCompleted', { turnId, callId: 'w' }],
      [
        'ToolCallRequested',
        { turnId, callId: 'e', name: 'edit', input: { edits: [{ path: 'plan.md' }, { path: 'b.md' }] } },
      ],
      ['ToolCallCompleted', { turnId, callId: 'e' }],
      ['ToolCallRequested', { turnId, callId: 'f', name: 'rm', input: { path: 'refused.md' } }],
      ['ToolCallFailed', { turnId, callId: 'f' }],
      ['ChatFileAttached', { path: 'too-late.md' }],
    ),
    turnId,
  );

  it('has the events of the turn, its calls with their cost, and its trace', () => {
    expect(explained.events.map(({ position }) => position)).toEqual([
      20, 30, 50, 60, 70, 80, 90, 100, 110, 120,
    ]);
    expect(explained.calls).toEqual([
      expect.objectContaining({ position: 30, status: 'completed', inputTokens: 3, durationMs: 1_500 }),
    ]);
    expect(explained).toMatchObject({ traceId: TRACE, correlationId: 'request-1', contextPosition: 29 });
  });

  it('has the files that were attached before it, and those that it read or changed', () => {
    expect(explained.files.map(({ path, how }) => [path, how])).toEqual([
      ['tides.md', 'attached'],
      ['notes.md', 'read'],
      ['plan.md', 'changed'],
      ['b.md', 'changed'],
    ]);
  });

  it('is found by its id, and by the id or the position of one of its events', () => {
    const events = log(
      ['SessionStarted', { sessionId: 's' }],
      ['TurnRequested', { turnId }],
      ['ModelCallStarted', call],
    ).map((event) => ({ ...event, eventId: `event-${event.position}` }));
    expect(findFocus(events, turnId)).toEqual({ turnId, position: null });
    expect(findFocus(events, 'event-30')).toEqual({ turnId, position: 30 });
    expect(findFocus(events, '30')).toEqual({ turnId, position: 30 });
    expect([findFocus(events, 'event-10'), findFocus(events, 'no-such')]).toEqual([null, null]);
  });

  it('has no trace without a valid traceparent', () => {
    expect([traceIdOf(undefined), traceIdOf('00-xyz-1-01')]).toEqual([null, null]);
  });
});
