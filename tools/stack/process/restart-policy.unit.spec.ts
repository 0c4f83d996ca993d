import { describe, expect, it } from '@jest/globals';
import { countFailure, DEFAULT_RESTART_POLICY, restartDelay } from './restart-policy.js';

const delaysOf = (readyForMs: readonly (number | null)[]): number[] => {
  let failures = 0;
  return readyForMs.map((ms) => {
    failures = countFailure(DEFAULT_RESTART_POLICY, failures, ms);
    return restartDelay(DEFAULT_RESTART_POLICY, failures);
  });
};

describe('the restart policy', () => {
  it('restarts at once after the first exit', () => {
    expect(delaysOf([60_000])).toEqual([0]);
  });

  it('doubles the delay after each further failure, up to ten seconds', () => {
    expect(delaysOf([null, null, null, 100, null, null, null, null, null])).toEqual([
      0, 250, 500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000,
    ]);
  });

  it('starts over once a process was healthy for two seconds', () => {
    expect(delaysOf([null, null, null, 2_000, null])).toEqual([0, 250, 500, 0, 250]);
  });
});
