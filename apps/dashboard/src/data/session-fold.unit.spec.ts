import { describe, expect, it } from '@jest/globals';
import type { LogEvent } from '@antiphon/client';
import { deletionsOf, withoutDeleted } from './deletions.js';
import { createFold, foldTo } from './session-fold.js';
import { foldEvents } from './transcript.js';

const event = (index: number): LogEvent => {
  const turnId = `turn-${Math.floor(index / 4)}`;
  const data = { turnId, content: `message ${index}`, text: `text ${index}`, part: 'message' };
  const type = ['TurnRequested', 'ModelCallCompleted', 'TurnCompleted', 'ChatMessageDeleted'][index % 4];
  return {
    ...{ type, data, position: index * 3 + 1, streamVersion: index + 1, eventId: `e${index}` },
    recordedAt: '2026-11-23T05:00:00.000Z',
  } as unknown as LogEvent;
};
const EVENTS = Array.from({ length: 1_000 }, (_, index) => event(index));

describe('the fold of a long session', () => {
  it('equals that of all events at any position, in any order', () => {
    const fold = createFold(EVENTS);
    for (const position of [2_999, 1, 1_500, 384, 387, 0, null, 12])
      expect(foldTo(fold, position)).toEqual(foldEvents(EVENTS, position));
  });

  it('takes over what was folded when events are appended, and begins again for others', () => {
    const first = createFold(EVENTS.slice(0, 600));
    foldTo(first, null);
    const longer = createFold(EVENTS, first);
    expect(longer.kept).toBe(first.kept);
    expect(foldTo(longer, null)).toEqual(foldEvents(EVENTS, null));
    expect(createFold(EVENTS.slice(1), first).kept).not.toBe(first.kept);
  });
});

describe('a message that was deleted', () => {
  it('is in no view of an earlier position', () => {
    const before = foldEvents(EVENTS, 4);
    expect(before.turns[0]?.message.text).toBe('message 0');
    const [turn] = withoutDeleted(before, deletionsOf(EVENTS)).turns;
    expect(turn?.message).toMatchObject({ text: '', isDeleted: true });
  });
});
