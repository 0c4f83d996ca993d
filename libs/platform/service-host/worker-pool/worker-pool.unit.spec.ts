import { afterEach, describe, expect, it } from '@jest/globals';
import { until } from '@antiphon/testing';
import { WorkerPool } from './worker-pool.js';

type Jobs = {
  readonly add: (numbers: readonly [number, number]) => number;
  readonly spin: (ms: number) => string;
  readonly fill: (arrays: number) => number;
  readonly refuse: (code: string) => never;
  readonly crash: (message: string) => never;
  readonly environment: (none: null) => readonly string[];
};

const SOURCE = `
  const kept = [];
  export const jobs = {
    add: ([a, b]) => a + b,
    spin: (ms) => { const until = Date.now() + ms; while (Date.now() < until); return 'spun'; },
    fill: (count) => { for (let n = 0; n < count; n++) kept.push(new Array(10_000_000).fill({ n })); return kept.length; },
    refuse: (code) => { throw Object.assign(new Error('refused'), { kind: 'conflict', code, data: { why: 1 } }); },
    crash: (message) => { throw new Error(message); },
    environment: () => Object.keys(process.env),
  };
`;

const MODULE = new URL(`data:text/javascript,${encodeURIComponent(SOURCE)}`);

const pools: WorkerPool[] = [];
const createPool = (options: { threads?: number; idleMs?: number } = {}) => {
  const pool = new WorkerPool(options);
  pools.push(pool);
  return Object.assign(pool, pool.jobsOf<Jobs>(MODULE));
};
afterEach(async () => {
  for (const pool of pools.splice(0)) await pool.close();
});

const PATIENT = { deadlineMs: 20_000 };
const codeOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => null,
    (error: { code: string }) => error.code,
  );

describe('the pool of threads', () => {
  it('returns what a function returns, in the order of one owner', async () => {
    const pool = createPool();
    const sums = [1, 2, 3].map((n) => pool.run({ name: 'add', input: [n, n], owner: 'a', ...PATIENT }));
    expect(await Promise.all(sums)).toEqual([2, 4, 6]);
    expect(pool.size).toBe(1);
  });

  it('ends work at its deadline with its thread, and runs the next work in another one', async () => {
    const pool = createPool();
    const spin = pool.run({ name: 'spin', input: 60_000, owner: 'a', deadlineMs: 50 });
    const next = pool.run({ name: 'add', input: [1, 1], owner: 'a', ...PATIENT });
    expect(await codeOf(spin)).toBe('WORK.DEADLINE');
    expect(await next).toBe(2);
  });

  it('leaves a thread to others while one owner has much work', async () => {
    const pool = createPool();
    const spins = Array.from({ length: 8 }, () =>
      pool.run({ name: 'spin', input: 60_000, owner: 'a', deadlineMs: 15_000 }),
    );
    const ends = spins.map(codeOf);
    expect(await pool.run({ name: 'add', input: [2, 2], owner: 'b', ...PATIENT })).toBe(4);
    expect(pool.size).toBe(2);
    await pool.close();
    expect(await Promise.all(ends)).toEqual(['WORK.FAILED', ...Array.from({ length: 7 }, () => 'WORK.BUSY')]);
  });

  it('refuses work of an owner beyond a number that waits', async () => {
    const pool = createPool();
    const add = (owner: string) =>
      codeOf(pool.run({ name: 'add', input: [1, 1], owner, ...PATIENT, mostWaiting: 2 }));
    const codes = await Promise.all(['a', 'a', 'a', 'a', 'b'].map(add));
    expect(codes).toEqual([null, null, null, 'WORK.BUSY', null]);
  });

  it('passes an error with its code, and hides one without', async () => {
    const pool = createPool();
    const refused = pool.run({ name: 'refuse', input: 'FILE.STALE', owner: 'a', ...PATIENT });
    await expect(refused).rejects.toMatchObject({ kind: 'conflict', code: 'FILE.STALE', data: { why: 1 } });
    const crashed = pool.run({ name: 'crash', input: 'secret', owner: 'a', ...PATIENT });
    await expect(crashed).rejects.toMatchObject({ kind: 'bug', message: 'work in a thread failed' });
    expect(await pool.run({ name: 'add', input: [1, 2], owner: 'a', ...PATIENT })).toBe(3);
  });

  it('survives work that fills the memory of its thread', async () => {
    const pool = createPool();
    const filled = pool.run({ name: 'fill', input: 100, owner: 'a', ...PATIENT });
    expect(await codeOf(filled)).toBe('WORK.OUT_OF_MEMORY');
    expect(await pool.run({ name: 'add', input: [1, 2], owner: 'a', ...PATIENT })).toBe(3);
  });

  it('runs the functions of several modules in one thread', async () => {
    const pool = createPool();
    const other = `export const jobs = { add: ([a, b]) => a * b };`;
    const multiply = pool.jobsOf<Jobs>(new URL(`data:text/javascript,${encodeURIComponent(other)}`));
    for (const jobs of [pool, multiply, pool])
      expect(await jobs.run({ name: 'add', input: [3, 4], owner: 'a', ...PATIENT })).toBe(
        jobs === multiply ? 12 : 7,
      );
    expect(pool.size).toBe(1);
  });

  it('gives threads no environment, and ends them after a time without work', async () => {
    const pool = createPool({ idleMs: 10 });
    expect(await pool.run({ name: 'environment', input: null, owner: 'a', ...PATIENT })).toEqual([]);
    await until(() => pool.size === 0);
  });
});
