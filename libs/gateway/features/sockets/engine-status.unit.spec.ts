import { describe, expect, it } from '@jest/globals';
import { EngineStatusChange } from '@antiphon/contracts/gateway';
import { ALL_HEALTHY, judgeEngines, type EngineState } from './engine-status.js';

const AT = ['2026-01-01T00:00:00.000Z', '2026-01-01T00:00:01.000Z', '2026-01-01T00:00:02.000Z'] as const;
const checks = (nats: boolean, postgresql: boolean) => [
  { name: 'nats', healthy: nats },
  { name: 'postgresql', healthy: postgresql },
];

/** Returns the change after each report. */
const through = (reports: ReturnType<typeof checks>[], at: readonly string[] = AT) => {
  let state: EngineState = ALL_HEALTHY;
  return reports.map((report, i) => {
    const judged = judgeEngines(state, report, at[i] ?? AT[2]);
    state = judged.state;
    return judged.change;
  });
};

describe('judgeEngines', () => {
  it('reports no change while all engines are healthy, nor for a single failed check', () => {
    expect(through([checks(true, true), checks(true, false), checks(true, true)])).toEqual([
      null,
      null,
      null,
    ]);
  });

  it('reports an engine after two failed checks, once, and reports its recovery', () => {
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

  it('names all unreachable engines when a second one fails, with the time of the first failure', () => {
    const changes = through([
      checks(true, false),
      checks(false, false),
      checks(false, false),
      checks(false, true),
    ]);
    expect(changes.map((change) => change?.engines ?? null)).toEqual([
      null,
      ['postgresql'],
      ['nats', 'postgresql'],
      ['nats'],
    ]);
    expect(new Set(changes.flatMap((change) => (change ? [change.since] : [])))).toEqual(new Set([AT[1]]));
  });
});
