import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { readJson } from './files.mjs';
import { projectRoot } from './project.mjs';

const JEST = join(projectRoot, 'node_modules/jest/bin/jest.js');
const REPORTER = join(projectRoot, 'tools/bootstrap/count-reporter.mjs');
const REASONS = join(projectRoot, 'tools/bootstrap/slow-files.json');
const MAX_REPEATED_FILES = 2;
const NONE = { passed: 0, failed: 0, skipped: 0, files: [] };

/** Renders `7 passed, 1 failed`. A suite that could not be loaded counts as one failure. */
export const summary = ({ passed = 0, failed = 0 }) => `${passed} passed, ${failed} failed`;

/**
 * Returns the spec files to run a second time, or none. A shared machine can miss the deadline of a
 * spec, so CI repeats up to two failed files, alone. A run that needs more repeats fails.
 */
export const filesToRepeat = (count, ci) => {
  const files = count.files ?? [];
  const named = files.reduce((sum, file) => sum + file.failed, 0);
  // A failure that no file has, as of a global set-up, would not be repeated.
  if (!ci || named !== count.failed || files.length > MAX_REPEATED_FILES) return [];
  return files.map((file) => file.path);
};

/** Returns the totals of a run, with the results of the repeated files in place of the first ones. */
export const mergeCounts = (first, repeated) => {
  const before = (key) => first.files.reduce((sum, file) => sum + file[key], 0);
  return {
    passed: first.passed - before('passed') + repeated.passed,
    failed: first.failed - before('failed') + repeated.failed,
    skipped: first.skipped,
    files: repeated.files,
  };
};

/** Renders the files that ran a second time: a line for each result, none without files. */
export const repeatedFiles = (first, second) => {
  const failedTwice = new Set(second.files.map((file) => file.path));
  const names = (isFailed) =>
    first.files
      .filter(({ path }) => failedTwice.has(path) === isFailed)
      .map(({ path }) => relative(projectRoot, path))
      .join(', ');
  return [
    ['failed twice', names(true)],
    ['failed in parallel, passed alone', names(false)],
  ].flatMap(([what, files]) => (files === '' ? [] : [`${what}: ${files}`]));
};

/** Renders how many spec files of a run of CI ran a second time, and why none did. */
export const repeatCount = (repeated, { files = [] }) => {
  const reason =
    files.length > MAX_REPEATED_FILES
      ? ` (${files.length} failed; at most ${MAX_REPEATED_FILES} repeat)`
      : '';
  return `repeated spec files: ${repeated}${reason}`;
};

/** Renders the spec files that took longest, each with its reason (`slow-files.json`). */
export const slowestFiles = ({ slowest = [] }, reasons = readJson(REASONS) ?? {}) =>
  slowest
    .filter(({ seconds }) => seconds > 0)
    .map(({ path, seconds }) => {
      const name = relative(projectRoot, path);
      const reason = reasons[name] === undefined ? '' : `: ${reasons[name]}`;
      return `slow spec file: ${seconds} s ${name}${reason}`;
    });

/**
 * Runs Jest with `args` and prints the totals last, after the slowest files and what was skipped or
 * ran twice. Returns its exit code, or 1 if no test ran.
 */
export const runTests = async (args, runBundled) => {
  const folder = mkdtempSync(join(tmpdir(), 'antiphon-test-'));
  const countFile = join(folder, 'count.json');
  const env = {
    ...process.env,
    NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --experimental-vm-modules --no-warnings`.trim(),
    ANTIPHON_TEST_COUNT_FILE: countFile,
  };
  const run = async (jestArgs) => {
    rmSync(countFile, { force: true });
    const reporters = ['--reporters=default', `--reporters=${REPORTER}`];
    const code = await runBundled([JEST, ...reporters, ...jestArgs], env);
    return { code, count: readJson(countFile) };
  };
  try {
    // Two, on any machine: specs with deadlines fail where more runs than the cores can do.
    const workers = args.some((arg) => arg.startsWith('--maxWorkers')) ? [] : ['--maxWorkers=2'];
    const first = await run([...workers, ...args]);
    let { code, count } = { ...first, count: first.count ?? NONE };
    const notes = slowestFiles(count);
    const isCi = process.env.CI === 'true';
    const files = filesToRepeat(count, isCi);
    let repeats = 0;
    const deadline = Number(process.env.ANTIPHON_TEST_DEADLINE ?? Infinity) * 1_000;
    if (code !== 0 && files.length > 0 && Date.now() < deadline) {
      console.log(`running ${files.length} failed spec files again, alone`);
      repeats = files.length;
      const repeated = await run(['--maxWorkers=1', '--runTestsByPath', ...files]);
      // A repeated run that a spec ended has no totals: the results of the first run hold.
      if (repeated.count !== null) {
        code = repeated.code;
        notes.push(...repeatedFiles(count, repeated.count));
        count = mergeCounts(count, repeated.count);
      }
    }
    if (isCi) notes.push(repeatCount(repeats, first.count ?? NONE));
    if (count.skipped > 0) notes.push(`${count.skipped} skipped`);
    for (const line of [...notes, summary(count)]) console.log(line);
    return code === 0 && count.passed === 0 ? 1 : code;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};
