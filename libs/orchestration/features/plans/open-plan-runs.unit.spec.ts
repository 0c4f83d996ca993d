import { describe, expect, it } from '@jest/globals';
import { conflict, rejected, transient } from '@antiphon/kernel';
import { OpenPlanRuns, PlanRunFailures } from './open-plan-runs.js';
import type { PlanRunFact } from './open-plan-runs.js';

const factsOf = (count: number): PlanRunFact[] =>
  Array.from({ length: count }, (_, n) => ({
    ...{ position: n + 1, workspace: 'default', path: `${n >> 1}.plan.md` },
    ...{ runId: `run-${n >> 1}`, isEnd: n % 2 === 1 },
  }));

describe('the open runs of plans', () => {
  it('are those without an end, and a later read reads only what follows', async () => {
    const log = factsOf(5_001);
    let read = 0;
    const runs = new OpenPlanRuns(async (after) => {
      const page = log.filter(({ position }) => position > after).slice(0, 1_000);
      read += page.length;
      return page;
    });
    expect((await runs.find()).map(({ runId }) => runId)).toEqual(['run-2500']);
    expect(read).toBe(5_001);
    expect((await runs.find()).map(({ runId }) => runId)).toEqual(['run-2500']);
    expect(read).toBe(5_001);
    log.push({ ...log[5_000]!, position: 5_002, isEnd: true });
    expect(await runs.find()).toEqual([]);
    expect(read).toBe(5_002);
  });
});

describe('a failure of a run', () => {
  it('delays the next try, twice as long each time and at most a minute', () => {
    let now = 0;
    const failures = new PlanRunFailures(() => now);
    const delays = Array.from({ length: 10 }, () => {
      failures.add('run', transient('X.DOWN', 'down'));
      const began = now;
      while (failures.isWaiting('run')) now += 100;
      return now - began;
    });
    expect(delays).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]);
    failures.add('run', transient('X.DOWN', 'down'));
    failures.clear('run');
    expect(failures.isWaiting('run')).toBe(false);
  });

  it('ends the run at once if no retry helps, and after eight others unless a dependency is down', () => {
    const failures = new PlanRunFailures(() => 0);
    expect(failures.add('a', rejected('X.NO', 'no'))).toBe(true);
    const repeat = (runId: string, error: unknown): boolean[] =>
      Array.from({ length: 8 }, () => failures.add(runId, error));
    const eighth = [...Array<boolean>(7).fill(false), true];
    expect(repeat('b', conflict('X.BUSY', 'busy'))).toEqual(eighth);
    expect(repeat('c', new TypeError('bug'))).toEqual(eighth);
    expect(repeat('d', transient('X.DOWN', 'down'))).not.toContain(true);
  });
});
