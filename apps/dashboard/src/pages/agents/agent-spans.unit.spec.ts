import { describe, expect, it } from '@jest/globals';
import { bucketRows, spanOf, SPANS } from './agent-spans.js';

const DAY = Date.parse('2026-11-22T00:00:00.000Z');

describe('the spans of charts of an agent', () => {
  it('are an hour for an unknown name', () => {
    expect(SPANS.map(({ name }) => spanOf(name).name)).toEqual(['1h', '24h', '30d']);
    for (const name of ['', '1 h', '__proto__']) expect(spanOf(name).name).toBe('1h');
  });

  it.each(SPANS)('$name is $words', ({ words, step, limit }) =>
    expect(step * limit).toBe({ '1 hour': 3_600, '24 hours': 86_400, '30 days': 2_592_000 }[words]),
  );

  it('have a row for each step, with the idle value where no sample is', () => {
    const at = (seconds: number): string => new Date(DAY + seconds * 1_000).toISOString();
    const samples = [
      { at: at(90), n: 3 },
      { at: at(30), n: 1 },
    ];
    const rows = bucketRows(samples, SPANS[0], DAY + 119_000, ({ n }) => n, null);
    expect(rows).toHaveLength(120);
    expect(rows.slice(-4)).toEqual(
      [null, 1, null, 3].map((value, index) => ({ at: DAY + index * 30_000, values: [value] })),
    );
  });
});
