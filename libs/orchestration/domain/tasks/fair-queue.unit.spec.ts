import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { AGEING, FairQueue } from './fair-queue.js';
import type { QueuedTask } from './fair-queue.js';

let count = 0;
const task = (more: Partial<QueuedTask> = {}): QueuedTask => ({
  key: `t${++count}`,
  workspace: 'default',
  parent: 'client',
  priority: 5,
  lane: 'any',
  ...more,
});
const all = (): boolean => true;

const queueOf = (tasks: readonly QueuedTask[]): FairQueue => {
  const queue = new FairQueue();
  for (const each of tasks) queue.add(each);
  return queue;
};
const drain = (queue: FairQueue, times = Infinity): QueuedTask[] => {
  const picked: QueuedTask[] = [];
  while (picked.length < times) {
    const next = queue.pick(all);
    if (!next) break;
    picked.push(next);
  }
  return picked;
};
const jain = (shares: readonly number[]): number =>
  shares.reduce((a, b) => a + b, 0) ** 2 / (shares.length * shares.reduce((a, b) => a + b * b, 0));

describe('the order of waiting tasks', () => {
  it('begins with the most urgent one', () => {
    const tasks = [5, 9, 0, 3].map((priority) => task({ priority }));
    expect(drain(queueOf(tasks)).map(({ priority }) => priority)).toEqual([0, 3, 5, 9]);
  });

  it('takes tasks of one parent in their order', () => {
    const tasks = [task({ lane: 'a' }), task({ lane: 'b' }), task({ lane: 'a' })];
    expect(drain(queueOf(tasks))).toEqual(tasks);
  });

  it('alternates between the parents of a workspace, however many tasks one has', () => {
    const many = Array.from({ length: 50 }, () => task({ parent: 'many' }));
    const few = Array.from({ length: 5 }, () => task({ parent: 'few' }));
    const first = drain(queueOf([...many, ...few]), 10);
    expect(first.filter(({ parent }) => parent === 'few')).toHaveLength(5);
  });

  it('gives a parent that arrives later no share for its time without work', () => {
    const queue = queueOf(Array.from({ length: 60 }, () => task({ parent: 'early' })));
    drain(queue, 20);
    for (let i = 0; i < 20; i++) queue.add(task({ parent: 'late' }));
    const next = drain(queue, 20);
    expect(next.filter(({ parent }) => parent === 'late')).toHaveLength(10);
  });

  it('skips tasks that no idle agent can do', () => {
    const queue = queueOf([task({ lane: 'rust' }), task({ lane: 'prose' })]);
    expect(queue.pick((_, lane) => lane === 'prose')?.lane).toBe('prose');
    expect(queue.pick((_, lane) => lane === 'prose')).toBeUndefined();
    expect(queue.size).toBe(1);
  });

  // @shows agents-A9
  it('shares picks between 250 workspaces with a Jain index of at least 0.95', () => {
    const workspaces = Array.from({ length: 250 }, (_, index) => `w${index}`);
    // Workspace n has 10 + 4 n tasks: the last one has a hundred times those of the first.
    const tasks = workspaces.flatMap((workspace, index) =>
      Array.from({ length: 10 + 4 * index }, () => task({ workspace })),
    );
    const picked = drain(queueOf(tasks), 2_500);
    const shares = workspaces.map((name) => picked.filter(({ workspace }) => workspace === name).length);
    expect(jain(shares)).toBeGreaterThanOrEqual(0.95);
  });

  // @shows agents-A9
  it('lets the least urgent class wait at most ten times its fair share', () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 10 }), (classes) => {
        const queue = queueOf(
          Array.from({ length: classes }, (_, priority) =>
            Array.from({ length: 400 }, () => task({ priority })),
          ).flat(),
        );
        const picked = drain(queue, 390);
        const longest = (priority: number): number => {
          let wait = 0;
          let worst = 0;
          for (const each of picked) {
            wait = each.priority === priority ? 0 : wait + 1;
            worst = Math.max(worst, wait);
          }
          return worst + 1;
        };
        for (let priority = 0; priority < classes; priority++)
          expect(longest(priority)).toBeLessThanOrEqual(AGEING * classes);
        // Most picks are of the most urgent class.
        expect(picked.filter(({ priority }) => priority === 0).length).toBeGreaterThan(0.85 * picked.length);
      }),
    );
  });

  it('picks each task once, and none that was removed', () =>
    fc.assert(
      fc.property(
        fc.array(
          fc.record({
            workspace: fc.constantFrom('a', 'b', 'c'),
            parent: fc.constantFrom('p', 'q'),
            priority: fc.integer({ min: 0, max: 9 }),
            lane: fc.constantFrom('x', 'y'),
            isRemoved: fc.boolean(),
          }),
        ),
        (descriptions) => {
          const tasks = descriptions.map(({ isRemoved, ...more }) => ({ isRemoved, task: task(more) }));
          const queue = queueOf(tasks.map((each) => each.task));
          for (const each of tasks) if (each.isRemoved) queue.remove(each.task.key);
          const picked = drain(queue).map(({ key }) => key);
          const expected = tasks.flatMap((each) => (each.isRemoved ? [] : [each.task.key]));
          expect(picked.sort()).toEqual(expected.sort());
          expect(queue.workspaces()).toEqual([]);
        },
      ),
    ));
});
