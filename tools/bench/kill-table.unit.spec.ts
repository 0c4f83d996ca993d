import { describe, expect, it } from '@jest/globals';
import * as page from '../../benchmarks/kill-table/page.mjs';
import * as plan from '../../benchmarks/kill-table/plan.mjs';
import * as summary from '../../benchmarks/kill-table/summarize.mjs';

interface Point {
  readonly group: string;
  readonly mark?: string;
  readonly afterMs?: number;
  readonly delayMs?: number;
}
interface Turn {
  readonly id: string;
  readonly group: string;
  readonly isInterrupted: boolean;
  readonly isEnded: boolean;
  readonly isFailed: boolean;
  readonly resumeMs?: number;
  readonly modelCalls: number;
  readonly effects: number;
  readonly told: readonly string[];
}
interface Row {
  readonly name: string;
  readonly repeated: number;
  readonly lost: number;
  readonly neverResumed: number;
  readonly failed: number;
}
interface Results {
  readonly rows: readonly Row[];
}
const { MARKS, planKills } = plan as unknown as {
  readonly MARKS: readonly string[];
  planKills(options: { turnMs: number; seed: number; isQuick: boolean }): Point[];
};
const { summarizeSubject, verdictsOf } = summary as unknown as {
  summarizeSubject(measured: { turnMs: number; turns: readonly Turn[]; audit?: object }): Row;
  verdictsOf(row: object): { readonly what: string; readonly ok: boolean }[];
};
const { readPage, readResults, renderPage } = page as unknown as {
  readPage(): string;
  readResults(): Results;
  renderPage(results: Results, text: string): Promise<string>;
};

const turn = (id: string, change: Partial<Turn> = {}): Turn => ({
  ...{ id, group: 'delays', isInterrupted: true, isEnded: true, isFailed: false, resumeMs: 900 },
  ...{ modelCalls: 2, effects: 1, told: [`done ${id}`] },
  ...change,
});

describe('the plan of kills', () => {
  it('has 209 points: eleven after each boundary, and one in each of 132 parts of a turn', () => {
    const points = planKills({ turnMs: 132, seed: 1, isQuick: false });
    expect(points).toHaveLength(209);
    for (const mark of MARKS) expect(points.filter((point) => point.mark === mark)).toHaveLength(11);
    const parts = points.flatMap(({ delayMs }) => (delayMs === undefined ? [] : [Math.floor(delayMs)]));
    expect(parts.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 132 }, (_, part) => part));
  });

  it('is the same for the same seed, and has each boundary also in a quick run', () => {
    const quick = (seed: number) => planKills({ turnMs: 100, seed, isQuick: true });
    expect(quick(7)).toEqual(quick(7));
    expect(quick(7)).not.toEqual(quick(8));
    expect(new Set(quick(7).map(({ group }) => group))).toEqual(new Set([...MARKS, 'delays']));
  });
});

describe('the counts of a row', () => {
  it('tell repeated, lost, unknown and never resumed turns apart', () => {
    const turns = [
      turn('a'),
      turn('b', { effects: 2, modelCalls: 3 }),
      turn('c', { effects: 0 }),
      turn('d', { effects: 0, told: ['the outcome is unknown'] }),
      turn('e', { effects: 1, told: ['the outcome is unknown'] }),
      turn('f', { isEnded: false }),
    ];
    expect(summarizeSubject({ turnMs: 100, turns })).toMatchObject({
      ...{ kills: 6, once: 3, repeated: 1, none: 2, lost: 1, unknown: 2, neverResumed: 1 },
      ...{ modelCallsRepeated: 1, resumeP50Ms: 900 },
      told: [{ text: 'the outcome is unknown', times: 2 }],
    });
  });

  it('fail a row of ours that repeats an effect, and hold a peer to nothing', () => {
    const counts = summarizeSubject({ turnMs: 100, turns: [turn('a', { effects: 2 })] });
    const audit = { code: 0, last: 'everything holds' };
    const failed = verdictsOf({ ...counts, name: 'antiphon-agent', audit }).filter(({ ok }) => !ok);
    expect(failed.map(({ what }) => what)).toEqual(['antiphon-agent: repeated']);
    expect(verdictsOf({ ...counts, name: 'dbos' })).toEqual([]);
  });
});

describe('the published page', () => {
  it('shows the stored results, and no others', async () => {
    const text = readPage();
    expect(await renderPage(readResults(), text)).toBe(text);
  });

  it('has every row', () => {
    expect(readResults().rows.map(({ name }) => name)).toEqual([
      ...['antiphon-agent', 'antiphon-sandbox', 'dbos', 'restate', 'restate-server'],
      ...['langgraph', 'langgraph-sync'],
    ]);
  });
});
