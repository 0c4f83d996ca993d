import { writeFileSync } from 'node:fs';
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

  it('comes after the five spec files that took longest', () => {
    const testResults = [1, 7, 3, 20, 5, 4].map((seconds, i) => ({
      ...{ testFilePath: join(projectRoot, `libs/${i}.spec.ts`), numFailingTests: 0, testExecError: null },
      perfStats: { start: 1_000, end: 1_000 + seconds * 1_000 },
    }));
    const results = { numPassedTests: 6, numFailedTests: 0, numRuntimeErrorTestSuites: 0, testResults };
    const count = countResults({ ...results, numPendingTests: 0, numTodoTests: 0, numTotalTestSuites: 6 });
    expect(slowestFiles(count)).toEqual([
      'slow spec file: 20 s libs/3.spec.ts',
      'slow spec file: 7 s libs/1.spec.ts',
      'slow spec file: 5 s libs/4.spec.ts',
      'slow spec file: 4 s libs/5.spec.ts',
      'slow spec file: 3 s libs/2.spec.ts',
    ]);
  });
});

describe('a spec file that fails in CI', () => {
  const files = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map(failedFile);

  it('is run once more, alone, but not when more than six files failed', () => {
    expect(filesToRepeat({ failed: 6, files: files.slice(0, 6) }, true)).toEqual([...'abcdef']);
    expect(filesToRepeat({ failed: 7, files }, true)).toEqual([]);
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

  it.each([0, 1])(
    'that a spec ends with code %i and no totals fails with those of the first run',
    async (exit) => {
      process.env['CI'] = 'true';
      const lines: unknown[] = [];
      jest.spyOn(console, 'log').mockImplementation((line) => void lines.push(line));
      let runs = 0;
      const code = await runTests([], (_args: string[], env: Record<string, string>) => {
        if (++runs === 2) return Promise.resolve(exit);
        const count = { passed: 4, failed: 1, skipped: 0, files: [failedFile('a')] };
        writeFileSync(env['ANTIPHON_TEST_COUNT_FILE'] ?? '', JSON.stringify(count));
        return Promise.resolve(1);
      });
      expect([code, runs, lines.at(-1)]).toEqual([1, 2, '4 passed, 1 failed']);
    },
  );
});
