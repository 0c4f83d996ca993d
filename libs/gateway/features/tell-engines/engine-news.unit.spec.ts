import { describe, expect, it } from '@jest/globals';
import { EngineStatusChange } from '@antiphon/contracts/gateway';
import { ALL_WELL, judgeEngines, type EngineState } from './engine-news.js';

const AT = ['2026-01-01T00:00:00.000Z', '2026-01-01T00:00:01.000Z', '2026-01-01T00:00:02.000Z'] as const;
const checks = (nats: boolean, postgresql: boolean) => [
  { name: 'nats', healthy: nats },
  { name: 'postgresql', healthy: postgresql },
];

/** The news of report after report. */
const through = (reports: ReturnType<typeof checks>[], at: readonly string[] = AT) => {
  let state: EngineState = ALL_WELL;
  return reports.map((report, i) => {
    const judged = judgeEngines(state, report, at[i] ?? AT[2]);
    state = judged.state;
    return judged.news;
  });
};

describe('news of the engines', () => {
  it('is none while all answer, nor of one check that was late', () => {
    expect(through([checks(true, true), checks(true, false), checks(true, true)])).toEqual([
      null,
      null,
      null,
    ]);
  });

  it('names the engine that fails twice in a row, once, and says when it is back', () => {
    const [, first, second] = through([checks(true, false), checks(true, false), checks(true, false)]);
    expect(EngineStatusChange.parse(first)).toMatchObject({
      type: 'gateway.degraded',
      engines: ['postgresql'],
      since: AT[1],
    });
    expect(second).toBeNull();
    const [, , back] = through([checks(true, false), checks(true, false), checks(true, true)]);
    expect(EngineStatusChange.parse(back)).toMatchObject({
      type: 'gateway.recovered',
      engines: ['postgresql'],
    });
  });

  it('names all that are gone when a second one goes, and since when the first is', () => {
    const news = through([
      checks(true, false),
      checks(false, false),
      checks(false, false),
      checks(false, true),
    ]);
    expect(news.map((told) => told?.engines ?? null)).toEqual([
      null,
      ['postgresql'],
      ['nats', 'postgresql'],
      ['nats'],
    ]);
    expect(new Set(news.flatMap((told) => (told ? [told.since] : [])))).toEqual(new Set([AT[1]]));
  });
});
