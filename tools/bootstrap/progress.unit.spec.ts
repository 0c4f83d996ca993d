import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { createProgress } from './progress.mjs';
import { letTimePass } from '@antiphon/testing/waits';

describe('progress', () => {
  const lines: string[] = [];
  const progress = createProgress((line) => void lines.push(line));
  beforeEach(() => {
    lines.length = 0;
    jest.useFakeTimers();
  });
  afterEach(() => void jest.useRealTimers());

  it('prints nothing about a short step', async () => {
    const step = progress.step('migrating', () => letTimePass(1_900));
    await jest.advanceTimersByTimeAsync(1_900);
    await step;
    expect(lines).toEqual([]);
  });

  it('reports a step after two seconds, every ten seconds, and when it is done', async () => {
    const step = progress.step('fetching', async (detail) => {
      detail('3 of 9 MiB');
      await letTimePass(13_000);
    });
    await jest.advanceTimersByTimeAsync(13_000);
    await step;
    expect(lines).toEqual([
      '  fetching … 3 of 9 MiB',
      '  fetching … 3 of 9 MiB (12 s)',
      '  fetching: done in 13 s',
    ]);
  });

  it('stops reporting when the step fails', async () => {
    const step = progress.step('building', () =>
      letTimePass(3_000).then(() => Promise.reject(new Error('no'))),
    );
    const failed = expect(step).rejects.toThrow('no');
    await jest.advanceTimersByTimeAsync(60_000);
    await failed;
    expect(lines).toEqual(['  building …']);
  });
});
