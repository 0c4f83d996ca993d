import { describe, expect, it } from '@jest/globals';
import { isFailure } from './failures.js';

describe('a failure that makes a toast', () => {
  it.each(['AgentFailed', 'AgentUnresponsive', 'TurnFailed', 'TaskFailed', 'RunFailed'])('is %s', (type) =>
    expect(isFailure({ type, data: {} })).toBe(true),
  );

  it.each([
    ['failed', true],
    ['completed', false],
    ['cancelled', false],
    ['expired', false],
  ])('is the end of a task of the queue with the status %s: %s', (status, isFailed) =>
    expect(isFailure({ type: 'TaskEnded', data: { status } })).toBe(isFailed),
  );

  it('is no other event, and none without data', () => {
    for (const type of ['TurnCompleted', 'TaskQueued', 'TaskEnded', 'RunCancelled'])
      expect(isFailure({ type, data: null })).toBe(false);
  });
});
