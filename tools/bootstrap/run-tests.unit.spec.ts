import { describe, expect, it } from '@jest/globals';
import { summary } from './run-tests.mjs';

describe('the last line of a test run', () => {
  it('contains the totals', () => {
    expect(summary({ passed: 7, failed: 0, skipped: 0 })).toBe('7 passed, 0 failed');
    expect(summary({ passed: 7, failed: 2, skipped: 1 })).toBe('7 passed, 2 failed, 1 skipped');
  });
});
