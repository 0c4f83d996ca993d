import { describe, expect, it } from '@jest/globals';
import type { RecordedEvent } from '@antiphon/event-store';
import { sessionChanges } from './agent-sessions.projection.js';

const event = (
  position: number,
  type: string,
  session = 'a',
  data: RecordedEvent['data'] = {},
): RecordedEvent => ({
  position,
  workspace: 'default',
  category: 'session',
  streamId: `session-${session}`,
  streamVersion: position,
  eventId: `e${position}`,
  type,
  schemaVersion: 1,
  data,
  metadata: { correlationId: 'c', service: 'agent' },
  recordedAt: '2026-11-21T12:00:00.000Z',
  hash: '',
});

describe('sessionChanges', () => {
  it('sums the turns of a batch by session', () =>
    expect(
      sessionChanges([
        event(1, 'SessionStarted', 'a', { sessionKey: 'k', agentId: 'main', startedAt: 'then' }),
        event(2, 'TurnRequested'),
        event(3, 'TurnRequested'),
        event(4, 'ModelCallStarted'),
        event(5, 'TurnFailed'),
        event(6, 'TurnCancelled', 'b'),
      ]),
    ).toMatchObject([
      {
        sessionId: 'a',
        sessionKey: 'k',
        agentId: 'main',
        startedAt: 'then',
        turns: 2,
        openTurns: 1,
        lastPosition: 5,
      },
      { sessionId: 'b', turns: 0, openTurns: -1, lastPosition: 6 },
    ]));

  it('ignores events that change no session row', () =>
    expect(sessionChanges([event(1, 'SessionKeyBound', 'key-x'), event(2, 'ToolCallRequested')])).toEqual(
      [],
    ));
});
