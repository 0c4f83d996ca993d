import { describe, expect, it } from '@jest/globals';
import { JEST_ALONE, JEST_ARGUMENTS, startInterruptibleRun } from './testing/interrupt-run.js';

const COMMANDS = {
  'npm test': ['npm', 'test', '--', ...JEST_ARGUMENTS],
  'the runner of npm test': [process.execPath, 'tools/bootstrap/test.cjs', ...JEST_ARGUMENTS],
  'Jest alone': JEST_ALONE,
  'npm run test:nightly': ['npm', 'run', 'test:nightly', '--', '--only', 'start-stack'],
  'the runner of npm run test:nightly': [process.execPath, 'tools/nightly/run.mjs', '--only', 'start-stack'],
} as const;
/** SIGKILL of a process is the death of a parent for the other processes of the run. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGKILL'] as const;

describe.each(Object.entries(COMMANDS))('%s', (_name, command) => {
  it.each(SIGNALS)('leaves no engine, no stack and no folder after %s', async (signal) => {
    const run = await startInterruptibleRun(command);
    try {
      run.interrupt(signal);
      expect(await run.leftovers()).toEqual([]);
    } finally {
      run.remove();
    }
  });
});
