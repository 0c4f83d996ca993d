import { describe, expect, it } from '@jest/globals';
import { filesToRepeat, mergeCounts, repeatedFiles, summary } from './run-tests.mjs';

const failedFile = (path: string) => ({ path, failed: 1, passed: 2 });

describe('the last line of a test run', () => {
  it('contains the totals', () => {
    expect(summary({ passed: 7, failed: 0, skipped: 0 })).toBe('7 passed, 0 failed');
    expect(summary({ passed: 7, failed: 2, skipped: 1 })).toBe('7 passed, 2 failed, 1 skipped');
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
    expect(repeatedFiles(first, again)).toMatch(
      /^; failed twice: \S*b; failed in parallel, passed alone: \S*a$/,
    );
    expect(repeatedFiles({ files: [] }, again)).toBe('');
  });
});
