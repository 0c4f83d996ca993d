import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { assertCommandsHold, report } from '@antiphon/testing/load';
import { FailpointSweep, SWEEP_ENDS } from './failpoint-sweep.js';
import { FAULT_CASES } from './fault-cases.js';

jest.setTimeout(120_000);

/** Runs each nth case alone, for a session at the keyboard. */
const EVERY = Number(process.env['ANTIPHON_APPROVALS_EVERY'] ?? 1);
/** Each step of a turn with an approval and a tool call. */
const POINTS = FAULT_CASES.filter(({ job }) => job === 'turn' || job === 'approval')
  .map(({ point }) => point)
  .filter((_, index) => index % EVERY === 0);

let sweep: FailpointSweep;
beforeAll(async () => {
  sweep = await FailpointSweep.start();
});
afterAll(() => sweep?.close());

describe('approvals of an agent at depth 3', () => {
  // @shows agents-A11
  it.each(POINTS)(
    'are listed at the root with their path and answered once, through kill -9 at %s',
    async (point) => {
      const result = await sweep.run({ fault: 'kill9', point, job: 'approval', stoppedMs: 0 });
      expect(result.verdict.problems).toEqual([]);
    },
  );

  it('leave a log in which every turn completed, and that passes the audit', async () => {
    const { verdict, audit, accepted } = await sweep.judge();
    report(`${accepted} turns with an approval, over ${POINTS.length} kills`);
    assertCommandsHold('approvals under kills', verdict, SWEEP_ENDS);
    expect(audit).toMatchObject({ ok: true });
  });
});
