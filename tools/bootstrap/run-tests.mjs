import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readJson } from './files.mjs';
import { projectRoot } from './project.mjs';

const JEST = join(projectRoot, 'node_modules/jest/bin/jest.js');
const REPORTER = join(projectRoot, 'tools/bootstrap/count-reporter.mjs');

/** `7 passed, 1 failed`, the last line of a test run. A suite that could not be loaded counts as one failure. */
export const summary = ({ passed, failed, skipped }) =>
  `${passed} passed, ${failed} failed${skipped === 0 ? '' : `, ${skipped} skipped`}`;

/**
 * Runs Jest (`args` are handed on to it) and prints the sum as the very last line.
 * @param {(args: string[], env: NodeJS.ProcessEnv) => Promise<number>} runBundled
 * @returns {Promise<number>} Jest's exit code; 1 if it ran no test at all
 */
export const runTests = async (args, runBundled) => {
  const folder = mkdtempSync(join(tmpdir(), 'antiphon-test-'));
  const countFile = join(folder, 'count.json');
  const env = {
    ...process.env,
    NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --experimental-vm-modules --no-warnings`.trim(),
    ANTIPHON_TEST_COUNT_FILE: countFile,
  };
  try {
    const workers = args.some((arg) => arg.startsWith('--maxWorkers')) ? [] : ['--maxWorkers=2'];
    const reporters = ['--reporters=default', `--reporters=${REPORTER}`];
    const code = await runBundled([JEST, ...workers, ...reporters, ...args], env);
    const count = readJson(countFile) ?? { passed: 0, failed: 0, skipped: 0 };
    console.log(summary(count));
    return code === 0 && count.passed === 0 ? 1 : code;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};
