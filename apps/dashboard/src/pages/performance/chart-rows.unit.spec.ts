import { describe, expect, it } from '@jest/globals';
import { SPAN_MS } from '../../data/time-series.js';
import { costView, daysView, eventsView, lagView, MAX_DAYS, turnsView } from './chart-rows.js';

// The clock of the reader, whose zone the sentences have.
const NOW = new Date(2026, 10, 25, 12, 0, 0).getTime();
const KNOWN = { since: NOW - SPAN_MS, until: NOW, position: 1, turns: [], charges: [] };
const reading = (index: number, head: number | null, lag: number | null) => ({
  ...{ at: NOW + index * 10_000, head, lag, waiting: 0 },
});

describe('the sentence of a chart', () => {
  it('says the last minute, the most in a minute; and the sum', () => {
    const turns = [1_000, 2_000, 70_000, 71_000, 72_000].map((age) => ({ at: NOW - age, amount: 1 }));
    expect(turnsView({ ...KNOWN, turns }).summary).toBe(
      '2 turns in the minute before 12:00:00, at most 3 in a minute; 5 in 30 minutes.',
    );
    const charges = [{ at: NOW - 1_000, amount: 12_500 }];
    const { summary, rows } = costView({ ...KNOWN, charges });
    expect(summary).toBe(
      '$0.0125 in the minute before 12:00:00, at most $0.0125 in a minute; $0.0125 in 30 minutes.',
    );
    expect(rows.at(-1)?.values).toEqual([0.0125]);
  });

  it('says the rate and the lag with the time of their last read', () => {
    const readings = [reading(0, 100, 0), reading(1, 110, 40), reading(2, 111, 1), reading(3, null, null)];
    expect(eventsView(readings)?.summary).toBe('6 events a minute at 12:00:20, at most 60.');
    expect(lagView(readings)?.summary).toBe(
      'The slowest read model is 1 event behind at 12:00:20, at most 40. Waiting for the log: 0 appends.',
    );
  });

  it('is missing while nothing is known', () => {
    expect([eventsView([]), eventsView([reading(0, 1, 1)]), lagView([]), daysView([])]).toEqual([
      ...[null, null, null, null],
    ]);
  });

  it('says that a minute has more than the page keeps', () => {
    const { summary, rows } = turnsView({ ...KNOWN, since: NOW - 30_000 });
    expect(summary).toMatch(/more turns and charges/);
    expect(rows.every(({ values }) => values[0] === null)).toBe(true);
  });
});

describe('the cost of each day', () => {
  it('has a day without a call, and ends at the newest one', () => {
    const view = daysView([
      { name: '2026-11-25', settledMicroUsd: 2_000_000 },
      { name: '2026-11-23', settledMicroUsd: 500_000 },
    ]);
    expect(view?.rows.map(({ values }) => values[0])).toEqual([0.5, 0, 2]);
    expect(view?.summary).toBe('$2.00 on 2026-11-25, at most $2.00 a day, $2.50 in 3 days.');
  });

  it('has the newest 30 days at most', () => {
    const view = daysView([
      { name: '2026-11-25', settledMicroUsd: 1 },
      { name: '2020-01-01', settledMicroUsd: 9_000_000 },
    ]);
    expect([view?.rows.length, view?.summary.includes('$9')]).toEqual([MAX_DAYS, false]);
  });
});
