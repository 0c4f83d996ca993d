import { describe, expect, it } from '@jest/globals';
import { addCounted, MAX_AMOUNTS, type CountedRead } from './log-amounts.js';
import { SPAN_MS } from './time-series.js';

const NOW = Date.parse('2026-11-25T12:00:00Z');
const eventAt = (position: number, age: number, type = 'TurnRequested', data: unknown = {}) => ({
  ...{ position, type, data: data as never, recordedAt: new Date(NOW - age).toISOString() },
});
const read = (events: CountedRead['events'], more: Partial<CountedRead> = {}): CountedRead => ({
  ...{ events, isComplete: true, position: events.at(-1)?.position ?? 0, readAt: NOW, ...more },
});

describe('the amounts of the log', () => {
  it('are turns, and the charges of settled and expired calls', () => {
    const events = [
      eventAt(5, 4_000),
      eventAt(7, 3_000, 'BudgetSettled', { microUsd: '=1+1' }),
      eventAt(8, 2_000, 'BudgetSettled', { microUsd: 7 }),
      eventAt(9, 1_000, 'BudgetExpired', { microUsd: 50 }),
    ];
    expect(addCounted(null, read(events, { position: 12 }))).toEqual({
      turns: [{ at: NOW - 4_000, amount: 1 }],
      charges: [
        { at: NOW - 2_000, amount: 7 },
        { at: NOW - 1_000, amount: 50 },
      ],
      ...{ since: NOW - SPAN_MS, until: NOW, position: 12 },
    });
  });

  it('grow by the events of later reads, and lose those older than 30 minutes', () => {
    const first = addCounted(null, read([eventAt(4, SPAN_MS - 1_000), eventAt(5, 0)]));
    const none = addCounted(first, read([], { position: 6, readAt: NOW + 500 }));
    expect([none.turns.length, none.position, none.until]).toEqual([2, 6, NOW + 500]);
    const second = addCounted(none, read([eventAt(8, -10_000)], { readAt: NOW + 10_000 }));
    expect(second.turns.map(({ at }) => at)).toEqual([NOW, NOW + 10_000]);
    expect([second.position, second.since]).toEqual([8, NOW + 10_000 - SPAN_MS]);
  });

  it('are known up to the last event of a read that is not complete, after which the next begins', () => {
    const events = [eventAt(3, 60_000), eventAt(4, 30_000)];
    const partial = addCounted(null, read(events, { isComplete: false, position: 900 }));
    expect([partial.until, partial.position]).toEqual([NOW - 30_000, 4]);
    const whole = addCounted(partial, read([eventAt(5, 1_000)], { position: 900 }));
    expect([whole.turns.length, whole.until, whole.position]).toEqual([3, NOW, 900]);
  });

  it('are a bounded number, and known only since the oldest that is kept', () => {
    const events = Array.from({ length: MAX_AMOUNTS + 10 }, (_, index) =>
      eventAt(index + 1, MAX_AMOUNTS + 10 - index),
    );
    const known = addCounted(null, read(events));
    expect([known.turns.length, known.since]).toEqual([MAX_AMOUNTS, NOW - MAX_AMOUNTS + 1]);
    expect(addCounted(known, read([])).since).toBe(known.since);
  });
});
