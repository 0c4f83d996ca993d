import { describe, expect, it } from '@jest/globals';
import type { RateBucket, Rates } from '../../data/rate-series.js';
import {
  callsView,
  costView,
  countsView,
  daysView,
  lagView,
  MAX_DAYS,
  openView,
  tokensView,
} from './chart-rows.js';

// The clock of the reader, whose zone the sentences have.
const NOW = new Date(2026, 10, 25, 12, 0, 0).getTime();
const reading = (index: number, lag: number | null) => ({ at: NOW + index * 10_000, lag, waiting: 0 });

const EMPTY: Omit<RateBucket, 'at'> = {
  ...{
    events: 0,
    turns: 0,
    endedTurns: 0,
    tasks: 0,
    endedTasks: 0,
    failures: 0,
    modelCalls: 0,
    toolCalls: 0,
  },
  ...{ inputTokens: 0, outputTokens: 0, microUsd: 0, openTurns: 0, openTasks: 0 },
};
const iso = (minute: number): string => new Date(NOW + minute * 60_000).toISOString();
/** Rates of the hour that ends in the minute 59. */
const rates = (...buckets: readonly (Partial<RateBucket> & { readonly minute: number })[]): Rates => ({
  ...{ span: '1h', step: 60, since: iso(0), until: new Date(NOW + 59.5 * 60_000).toISOString() },
  buckets: buckets.map(({ minute, ...counts }) => ({ ...EMPTY, ...counts, at: iso(minute) })),
  openBefore: { turns: 2, tasks: 1 },
});

describe('the sentence of a chart', () => {
  it('says the sum, the most of a step and the last step', () => {
    const some = rates({ minute: 3, turns: 3 }, { minute: 59, turns: 2, microUsd: 12_500 });
    const { rows, summary } = countsView(some, 'turns', ({ turns }) => turns);
    expect(summary).toBe('5 turns in 1 hour, at most 3 in a minute; 2 in the last one.');
    expect([rows.length, rows[3]?.values, rows[4]?.values, rows.at(-1)?.values]).toEqual([60, [3], [0], [2]]);
    expect(costView(some)).toMatchObject({
      summary: '$0.0125 in 1 hour, at most $0.0125 in a minute; $0.0125 in the last one.',
    });
    expect(costView(some).rows.at(-1)?.values).toEqual([0.0125]);
    const days = { ...some, span: '30d', step: 14_400 } as const;
    expect(countsView(days, 'turns', ({ turns }) => turns).summary).toContain(
      'in 30 days, at most 0 in 4 hours',
    );
  });

  it('says both of two series', () => {
    const some = rates({ minute: 5, inputTokens: 900, outputTokens: 100, modelCalls: 2, toolCalls: 1 });
    expect(tokensView(some).summary).toBe(
      '1,000 tokens (900 in, 100 out) in 1 hour, at most 1,000 in a minute; 0 in the last one.',
    );
    expect(callsView(some).summary).toMatch(/^2 model calls in 1 hour, .*\. 1 tool call, at most 1\.$/);
    expect(callsView(some).rows[5]?.values).toEqual([2, 1]);
  });

  it('keeps a level until it changes', () => {
    const { rows, summary } = openView(
      rates({ minute: 10, openTurns: 5, openTasks: 1 }, { minute: 20, openTurns: 0, openTasks: 1 }),
    );
    expect([0, 9, 10, 19, 20, 59].map((minute) => rows[minute]?.values)).toEqual([
      ...[
        [2, 1],
        [2, 1],
        [5, 1],
        [5, 1],
        [0, 1],
        [0, 1],
      ],
    ]);
    expect(summary).toBe('0 open turns, at most 5; 1 open task, at most 1 in 1 hour.');
  });

  it('says that a cost is not known to a caller who may not read it', () => {
    const { rows, summary } = costView(rates({ minute: 1, microUsd: null }));
    expect([rows[0]?.values, rows[1]?.values, rows.length]).toEqual([[null], [null], 60]);
    expect(summary).toBe('Costs need the permission budgets:read.');
  });

  it('ends before the minute of a position, which had not ended', () => {
    const past = { ...rates({ minute: 58, turns: 1 }), position: 7, head: 9 };
    const { rows } = countsView(past, 'turns', ({ turns }) => turns);
    expect([rows.length, rows.at(-1)]).toEqual([59, { at: NOW + 58 * 60_000, values: [1] }]);
    expect(countsView({ ...past, until: past.since }, 'turns', () => 0).summary).toBe(
      'Nothing is known of this time.',
    );
  });

  it('says the lag with the time of its last read', () => {
    expect(lagView([reading(0, 0), reading(1, 40), reading(2, 1), reading(3, null)])?.summary).toBe(
      'The slowest read model is 1 event behind at 12:00:20, at most 40. Waiting for the log: 0 appends.',
    );
    expect([lagView([]), daysView([])]).toEqual([null, null]);
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
