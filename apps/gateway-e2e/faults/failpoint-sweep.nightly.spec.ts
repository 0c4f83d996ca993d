import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { assertCommandsHold, checkFigure, percentile, report } from '@antiphon/testing/load';
import { FailpointSweep, SWEEP_ENDS } from './failpoint-sweep.js';
import { FAULTS, FAULT_CASES } from './fault-cases.js';

jest.setTimeout(300_000);

const STOPPED_MS = 20_000;
/** Promised maximum, at p99, from a fault until the accepted commands have ended. */
const RESUME_P99_MS = 20_000;
/** Runs each nth case alone, for a session at the keyboard. */
const EVERY = Number(process.env['ANTIPHON_SWEEP_EVERY'] ?? 1);

const CASES = FAULTS.flatMap((fault) => FAULT_CASES.map(({ point, job }) => ({ fault, point, job }))).filter(
  (_, index) => index % EVERY === 0,
);
const resumed: number[] = [];

let sweep: FailpointSweep;
beforeAll(async () => {
  sweep = await FailpointSweep.start();
});
afterAll(() => sweep?.close());

describe('a process that is broken at a failpoint', () => {
  it.each(CASES)('completes every accepted command once: $fault at $point', async ({ fault, point, job }) => {
    const result = await sweep.run({ fault, point, job, stoppedMs: STOPPED_MS });
    resumed.push(result.resumedMs);
    const outcome = `${result.accepted} accepted, all ended after ${Math.round(result.resumedMs)} ms`;
    report(`${fault} at ${point}: ${result.verdict.first ?? outcome}`);
    expect(result.verdict.problems).toEqual([]);
  });

  it('leaves a log that passes the audit, after ends within 20 s at p99', async () => {
    const { verdict, audit, accepted } = await sweep.judge();
    report(
      `${accepted} commands over ${resumed.length} faults; p50 ${Math.round(percentile(resumed, 0.5))} ms`,
    );
    assertCommandsHold('sweep of failpoints', verdict, SWEEP_ENDS);
    expect(audit).toMatchObject({ ok: true });
    checkFigure({
      ...{ what: 'sweep of failpoints: p99 of resume', value: percentile(resumed, 0.99), unit: 'ms' },
      atMost: RESUME_P99_MS,
    });
  });
});
