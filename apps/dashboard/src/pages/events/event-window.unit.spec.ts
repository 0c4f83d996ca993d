import { describe, expect, it } from '@jest/globals';
import type { LogEvent } from '@antiphon/client';
import { matches } from './event-query.js';
import { addNewer, addOlder, addRecorded, type EventWindow } from './event-window.js';

const MAX = 5;
/** Creates events from one position to another, in this order. */
const range = (from: number, to: number): LogEvent[] =>
  Array.from(
    { length: Math.abs(to - from) + 1 },
    (_, index) => ({ position: from + Math.sign(to - from) * index }) as LogEvent,
  );
const positionsOf = ({ events }: EventWindow): number[] => events.map(({ position }) => position);
const start: EventWindow = { events: range(20, 17), older: { cursor: 'a' }, dropped: 0 };

describe('the events in memory', () => {
  it('drop the newest ones when older ones are added', () => {
    const window = addOlder(start, range(16, 14), 'b', MAX);
    expect(positionsOf(window)).toEqual([18, 17, 16, 15, 14]);
    expect(window).toMatchObject({ dropped: 2, older: { cursor: 'b' } });
  });

  it('get the newer ones back, and read on before the oldest that is left', () => {
    const window = addNewer(addOlder(start, range(16, 14), 'b', MAX), range(19, 20), true, MAX);
    expect(positionsOf(window)).toEqual([20, 19, 18, 17, 16]);
    expect(window).toMatchObject({ dropped: 0, older: { before: 16 } });
  });

  it('have no gap: recorded events wait while the newest are dropped', () => {
    const behind = addOlder(start, range(16, 14), 'b', MAX);
    expect(addRecorded(behind, range(21, 22), MAX)).toBe(behind);
    const window = addRecorded(start, range(20, 22), MAX);
    expect(positionsOf(window)).toEqual([22, 21, 20, 19, 18]);
    expect(window.older).toEqual({ before: 18 });
  });
});

describe('an event and a range of time', () => {
  const event = { recordedAt: '2026-11-22T10:00:00.500Z' } as LogEvent;
  it('matches from the start of the range, and before its end', () => {
    expect(matches(event, { since: '2026-11-22T10:00:00.500Z' })).toBe(true);
    expect(matches(event, { since: '2026-11-22T10:00:01Z' })).toBe(false);
    expect(matches(event, { until: '2026-11-22T10:00:00.500Z' })).toBe(false);
    expect(matches(event, { until: '2026-11-22T12:00:01+01:00' })).toBe(true);
  });
});
