import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readJson } from './files.mjs';
import { projectRoot } from './project.mjs';

const JEST = join(projectRoot, 'node_modules/jest/bin/jest.js');
const REPORTER = join(projectRoot, 'tools/bootstrap/count-reporter.mjs');

/** Renders `7 passed, 1 failed`. A suite that could not be loaded counts as one failure. */
export const summary = ({ passed = 0, failed = 0, skipped = 0 }) =>
  `${passed} passed, ${failed} failed${skipped === 0 ? '' : `, ${skipped} skipped`}`;

/** Runs Jest with `args` and prints the totals last. Returns its exit code, or 1 if no test ran. */
export const runTests = async (args, runBundled) => {
  const folder = mkdtempSync(join(tmpdir(), 'antiphon-test-'));
  const countFile = join(folder, 'count.json');
  const env = {
    ...process.env,
    NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --experimental-vm-modules --no-warnings`.trim(),
    ANTIPHON_TEST_COUNT_FILE: countFile,
  };
  try {
    // Two, on any machine: specs with deadlines fail where more runs than the cores can do.
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
