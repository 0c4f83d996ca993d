import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startStack, type TestStack } from '../engines/start-stack.js';
import { formatEnds } from '../load/check-commands.js';
import { checkFigure, report } from '../load/figures.js';
import { CHAOS_CONFIG, CHAOS_ENDS, runChaos } from './chaos.js';

/** Changes every night. Set the variable to the seed of a failed run to repeat its schedule. */
const seed = Number(process.env['ANTIPHON_TEST_SEED'] ?? Date.now() % 1_000_000);
const minutes = Number(process.env['ANTIPHON_CHAOS_MINUTES'] ?? 1);

let stack: TestStack;
beforeAll(async () => {
  stack = await startStack({ config: CHAOS_CONFIG, scale: { gateway: 2, agent: 2 } });
});
afterAll(() => stack?.stop());

describe(`${minutes} min of faults under load, with seed ${seed}`, () => {
  it('lose and repeat no accepted command, complete its turns, and leave a log that passes the audit', async () => {
    const chaos = await runChaos(stack, { seed, minutes, sessions: 20, onProgress: report });
    report(`seed ${seed}: ${chaos.faults} faults, ${chaos.runs} runs; ${formatEnds(chaos, CHAOS_ENDS)}`);
    expect({ seed, problems: chaos.problems }).toEqual({ seed, problems: [] });
    checkFigure({
      ...{ what: 'turns completed under chaos', value: 100 * chaos.completedShare, unit: '%' },
      atLeast: 100 * CHAOS_ENDS.completed.atLeast,
    });
  });
});
