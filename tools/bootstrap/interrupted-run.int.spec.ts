import { expect, it } from '@jest/globals';
import { JEST_ALONE, startInterruptibleRun } from './testing/interrupt-run.js';

// Each signal, and each command that runs tests: interrupted-run.nightly.spec.ts.
it('a test run that SIGINT interrupts leaves no engine, no stack and no folder', async () => {
  const run = await startInterruptibleRun(JEST_ALONE);
  try {
    run.interrupt('SIGINT');
    expect(await run.leftovers()).toEqual([]);
  } finally {
    run.remove();
  }
}, 180_000);
