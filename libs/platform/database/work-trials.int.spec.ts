import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { createTrialLane } from '@antiphon/kernel';
import { createTestDatabase } from '@antiphon/testing';
import type { TestDatabase } from '@antiphon/testing';
import { createPool } from './pool.js';
import { createWorkStarts } from './work-starts.js';
import { acrossWorkspaces } from './workspace.js';
import { WorkTrials } from './work-trials.js';

let database: TestDatabase;
let pool: pg.Pool;
let other: pg.Pool;
beforeAll(async () => {
  database = await createTestDatabase();
  pool = createPool({ url: database.urlFor('agent'), applicationName: 'spec', max: 4 });
  other = createPool({ url: database.urlFor('memory'), applicationName: 'spec', max: 2 });
}, 60_000);
afterAll(async () => {
  await pool?.end();
  await other?.end();
  await database?.drop();
});

const never = (): Promise<never> => new Promise(() => undefined);

describe('work that is taken up', () => {
  it('is given up after three processes, and begins again from nothing', async () => {
    const item = randomUUID();
    const starts = createWorkStarts(pool);
    for (let life = 1; life <= 3; life++) {
      const begun = Promise.withResolvers<void>();
      // The process ends here: nothing of it settles.
      void new WorkTrials(starts, { lane: createTrialLane() }).run(
        'spec',
        item,
        () => (begun.resolve(), never()),
      );
      await begun.promise;
      expect(await starts.read('spec', item)).toBe(life);
    }
    const again = new WorkTrials(starts);
    await expect(again.run('spec', item, never)).rejects.toMatchObject({
      kind: 'rejected',
      code: 'WORK.PROCESS_LOST',
    });
    await expect(again.run('spec', item, () => Promise.resolve('done'))).resolves.toBe('done');
  });

  it('is forgotten once it made progress, failed by itself, or ran for the time of a trial', async () => {
    const item = randomUUID();
    const starts = createWorkStarts(pool);
    const trials = new WorkTrials(starts, { trialMs: 600_000 });
    const seen: number[] = [];
    await trials.run('spec', item, async (survive) => {
      seen.push(await starts.read('spec', item));
      await survive();
      seen.push(await starts.read('spec', item));
    });
    await expect(trials.run('spec', item, () => Promise.reject(new Error('failed')))).rejects.toThrow(
      'failed',
    );
    seen.push(await starts.read('spec', item));
    await new WorkTrials(starts, { trialMs: 5 }).run('spec', item, async () => {
      while ((await starts.read('spec', item)) > 0) await new Promise((resolve) => setImmediate(resolve));
    });
    expect(seen).toEqual([1, 0, 0]);
  });

  it('does not count processes that stop in order', async () => {
    const item = randomUUID();
    const starts = createWorkStarts(pool);
    /** Takes the work up in a process that is killed, or releases it at its stop. */
    const takeUp = async (how: 'stop' | 'kill'): Promise<void> => {
      const begun = Promise.withResolvers<void>();
      const trials = new WorkTrials(starts, { lane: createTrialLane() });
      void trials.run('spec', item, () => (begun.resolve(), never()));
      await begun.promise;
      if (how === 'stop') await trials.release();
    };
    for (let stops = 0; stops < 4; stops++) await takeUp('stop');
    expect(await starts.read('spec', item)).toBe(0);
    for (const how of ['kill', 'stop', 'kill', 'stop', 'kill'] as const) await takeUp(how);
    await expect(new WorkTrials(starts).run('spec', item, never)).rejects.toMatchObject({
      code: 'WORK.PROCESS_LOST',
    });
  });

  it('does not count a released process whose work ends after all', async () => {
    const item = randomUUID();
    const starts = createWorkStarts(pool);
    await starts.begin('spec', item);
    const trials = new WorkTrials(starts);
    const leave = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const work = trials.run('spec', item, () => (begun.resolve(), leave.promise));
    await begun.promise;
    await trials.release();
    leave.resolve();
    await work;
    // The earlier process stays counted.
    expect(await starts.read('spec', item)).toBe(1);
  });

  it.each([
    ['killed', 2],
    ['stopped in order', 3],
  ] as const)(
    'of a first process that is not counted and is %s is given up after %s kills',
    async (how, kills) => {
      const item = randomUUID();
      const starts = createWorkStarts(pool);
      const create = (): WorkTrials =>
        new WorkTrials(starts, { lane: createTrialLane(), countsFirst: false });
      const first = create();
      void first.runFirst('spec', item, never);
      if (how === 'stopped in order') await first.release();
      for (let life = 0; life < kills; life++) {
        const begun = Promise.withResolvers<void>();
        void create().run('spec', item, () => (begun.resolve(), never()));
        await begun.promise;
      }
      await expect(create().run('spec', item, never)).rejects.toMatchObject({ code: 'WORK.PROCESS_LOST' });
    },
  );

  it('starts alone at its last start, also among work of other kinds', async () => {
    const starts = createWorkStarts(pool);
    const [first, second] = [randomUUID(), randomUUID()];
    for (let start = 0; start < 2; start++) {
      await starts.begin('spec', first);
      await starts.begin('other', second);
    }
    const leave = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const one = new WorkTrials(starts).run('spec', first, () => (begun.resolve(), leave.promise));
    await begun.promise;
    const two = new WorkTrials(starts).run('other', second, () => Promise.resolve());
    // The second one waits, and is not counted.
    expect(await starts.read('other', second)).toBe(2);
    leave.resolve();
    await Promise.all([one, two]);
    expect(await starts.read('other', second)).toBe(0);
  });

  it('is counted where the clock was set back since, unless only older starts count', async () => {
    const item = randomUUID();
    const starts = createWorkStarts(pool);
    await starts.begin('spec', item);
    await acrossWorkspaces(pool).query(
      `update work_starts set started_at = clock_timestamp() + interval '1 hour' where item = $1`,
      [item],
    );
    expect([await starts.read('spec', item), await starts.read('spec', item, 2_000)]).toEqual([1, 0]);
  });

  it('is counted for each service on its own', async () => {
    const item = randomUUID();
    await createWorkStarts(pool).begin('spec', item);
    expect(await createWorkStarts(other).read('spec', item)).toBe(0);
    const rows = await other.query('select from work_starts');
    expect(rows.rowCount).toBe(0);
  });
});
