import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { assertCommandsHold, createSeededRandom } from '@antiphon/testing/load';
import { FailpointSweep, SWEEP_ENDS } from './failpoint-sweep.js';
import { FAULT_CASES } from './fault-cases.js';

jest.setTimeout(180_000);

const seed = Number(process.env['ANTIPHON_TEST_SEED'] ?? Date.now() % 1_000_000);
const random = createSeededRandom(seed);
const turns = FAULT_CASES.filter(({ job }) => job === 'turn');
const runs = FAULT_CASES.filter(({ job }) => job === 'run');
const SAMPLE = [random.pick(turns), random.pick(runs)];

let sweep: FailpointSweep;
beforeAll(async () => {
  sweep = await FailpointSweep.start();
});
afterAll(() => sweep?.close());

describe(`a sample of the failpoint sweep, by seed ${seed}`, () => {
  it.each(SAMPLE)('completes every accepted command once after kill -9 at $point', async ({ point, job }) => {
    const { verdict } = await sweep.run({ point, job, fault: 'kill9', stoppedMs: 0 });
    expect(verdict.problems).toEqual([]);
  });

  it('leaves a log that passes the audit', async () => {
    const { verdict, audit } = await sweep.judge();
    assertCommandsHold('sample of the sweep', verdict, SWEEP_ENDS);
    expect(audit).toMatchObject({ ok: true });
  });
});
