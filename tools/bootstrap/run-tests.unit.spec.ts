import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { countResults } from './count-reporter.mjs';
import { projectRoot } from './project.mjs';
import { filesToRepeat, mergeCounts, repeatedFiles, runTests, slowestFiles, summary } from './run-tests.mjs';

const failedFile = (path: string) => ({ path, failed: 1, passed: 2 });

describe('the last line of a test run', () => {
  it('contains the totals', () => {
    expect(summary({ passed: 7, failed: 0 })).toBe('7 passed, 0 failed');
    expect(summary({ passed: 7, failed: 2 })).toBe('7 passed, 2 failed');
  });

  it('counts each spec file without a result at the deadline as one failure', () => {
    const file = { testFilePath: 'a', numFailingTests: 1, numPassingTests: 2, testExecError: null };
    const results = {
      numPassedTests: 2,
      numFailedTests: 1,
      numRuntimeErrorTestSuites: 0,
      numPendingTests: 1,
    };
    expect(countResults({ ...results, numTodoTests: 0, numTotalTestSuites: 5, testResults: [file] })).toEqual(
      {
        passed: 2,
        failed: 5,
        skipped: 1,
        files: [{ path: 'a', failed: 1, passed: 2 }],
        slowest: [{ path: 'a', seconds: 0 }],
      },
    );
  });

  it('comes after the ten spec files that took longest', () => {
    const testResults = [1, 7, 3, 20, 5, 4, 11, 12, 13, 14, 15].map((seconds, i) => ({
      ...{ testFilePath: join(projectRoot, `libs/${i}.spec.ts`), numFailingTests: 0, testExecError: null },
      perfStats: { start: 1_000, end: 1_000 + seconds * 1_000 },
    }));
    const results = { numPassedTests: 6, numFailedTests: 0, numRuntimeErrorTestSuites: 0, testResults };
    const count = countResults({ ...results, numPendingTests: 0, numTodoTests: 0, numTotalTestSuites: 6 });
    expect(slowestFiles(count, { 'libs/3.spec.ts': 'it kills four processes' })).toEqual([
      'slow spec file: 20 s libs/3.spec.ts: it kills four processes',
      'slow spec file: 15 s libs/10.spec.ts',
      'slow spec file: 14 s libs/9.spec.ts',
      'slow spec file: 13 s libs/8.spec.ts',
      'slow spec file: 12 s libs/7.spec.ts',
      'slow spec file: 11 s libs/6.spec.ts',
      'slow spec file: 7 s libs/1.spec.ts',
      'slow spec file: 5 s libs/4.spec.ts',
      'slow spec file: 4 s libs/5.spec.ts',
      'slow spec file: 3 s libs/2.spec.ts',
    ]);
  });
});

describe('the reasons of slow spec files', () => {
  it('name files that exist', () => {
    const reasons = JSON.parse(
      readFileSync(join(projectRoot, 'tools/bootstrap/slow-files.json'), 'utf8'),
    ) as Record<string, string>;
    expect(Object.keys(reasons).filter((path) => !existsSync(join(projectRoot, path)))).toEqual([]);
  });
});

describe('a spec file that fails in CI', () => {
  const files = ['a', 'b', 'c'].map(failedFile);

  it('is run once more, alone, but not when more than two files failed', () => {
    expect(filesToRepeat({ failed: 2, files: files.slice(0, 2) }, true)).toEqual(['a', 'b']);
    expect(filesToRepeat({ failed: 3, files }, true)).toEqual([]);
    expect(filesToRepeat({ failed: 1, files: files.slice(0, 1) }, false)).toEqual([]);
  });

  it('is not run again next to a failure that no file has', () => {
    expect(filesToRepeat({ failed: 2, files: files.slice(0, 1) }, true)).toEqual([]);
    expect(filesToRepeat({ failed: 1 }, true)).toEqual([]);
  });

  it('counts with the result of its second run, which is reported', () => {
    const first = { passed: 10, failed: 2, skipped: 1, files: [failedFile('a'), failedFile('b')] };
    const again = { passed: 5, failed: 1, skipped: 0, files: [failedFile('b')] };
    expect(mergeCounts(first, again)).toEqual({ ...again, passed: 11, failed: 1, skipped: 1 });
    expect(repeatedFiles(first, again)).toEqual([
      expect.stringMatching(/^failed twice: \S*b$/),
      expect.stringMatching(/^failed in parallel, passed alone: \S*a$/),
    ]);
    expect(repeatedFiles({ files: [] }, again)).toEqual([]);
  });
});

describe('a repeated run', () => {
  const ci = process.env['CI'];
  afterEach(() => {
    if (ci === undefined) delete process.env['CI'];
    else process.env['CI'] = ci;
    jest.restoreAllMocks();
  });

  type Count = Pick<ReturnType<typeof countResults>, 'passed' | 'failed' | 'files'>;

  /** Runs tests in CI whose runs end with these codes and totals. Returns the code, runs and lines. */
  const runInCi = async (...results: (readonly [code: number, count: Count | null])[]) => {
    process.env['CI'] = 'true';
    const lines: string[] = [];
    jest.spyOn(console, 'log').mockImplementation((line: string) => void lines.push(line));
    let runs = 0;
    const code = await runTests([], (_args: string[], env: Record<string, string>) => {
      const [exit, count] = results[runs++] ?? [1, null];
      if (count !== null)
        writeFileSync(env['ANTIPHON_TEST_COUNT_FILE'] ?? '', JSON.stringify({ ...count, skipped: 0 }));
      return Promise.resolve(exit);
    });
    return { code, runs, lines };
  };
  const failed = (...names: string[]): Count => ({
    ...{ passed: 4, failed: names.length, files: names.map(failedFile) },
  });

  it.each([0, 1])(
    'that a spec ends with code %i and no totals fails with those of the first run',
    async (exit) => {
      const { code, runs, lines } = await runInCi([1, failed('a')], [exit, null]);
      expect([code, runs, lines.at(-1)]).toEqual([1, 2, '4 passed, 1 failed']);
    },
  );

  it('is counted, and passes if both files pass alone', async () => {
    const { code, runs, lines } = await runInCi(
      [1, failed('a', 'b')],
      [0, { passed: 6, failed: 0, files: [] }],
    );
    expect([code, runs]).toEqual([0, 2]);
    expect(lines.slice(-2)).toEqual(['repeated spec files: 2', '6 passed, 0 failed']);
  });

  it('of three files does not happen, and the run fails', async () => {
    const { code, runs, lines } = await runInCi([1, failed('a', 'b', 'c')]);
    expect([code, runs]).toEqual([1, 1]);
    expect(lines.slice(-2)).toEqual([
      'repeated spec files: 0 (3 failed; at most 2 repeat)',
      '4 passed, 3 failed',
    ]);
  });

  it('is counted as 0 when all files pass at once', async () => {
    const { code, runs, lines } = await runInCi([0, { passed: 5, failed: 0, files: [] }]);
    expect([code, runs]).toEqual([0, 1]);
    expect(lines.slice(-2)).toEqual(['repeated spec files: 0', '5 passed, 0 failed']);
  });
});
