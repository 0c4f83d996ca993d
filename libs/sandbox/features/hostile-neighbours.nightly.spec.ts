import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { letTimePass } from '@antiphon/testing/waits';
import { residentMb, startSandbox } from './testing/sandbox.fixture.spec.js';
import type { TestSandbox } from './testing/sandbox.fixture.spec.js';

jest.setTimeout(300_000);

const TIMEOUT_MS = 400;
const MEMORY_MB = 16;
const CALLS = 400;
const ROUNDS = 5;
const HOSTILE = ['loop', 'memory-4gib', 'table-fill', 'output-flood', 'recursion', 'exit', 'log-forever'];
const PAUSE_MS = 5;

const p99 = (durations: readonly number[]): number =>
  durations.toSorted((a, b) => a - b)[Math.floor(durations.length * 0.99)] ?? 0;

describe('calls next to hostile plug-ins', () => {
  let box: TestSandbox;
  beforeAll(async () => {
    const names = ['hello', ...HOSTILE];
    box = await startSandbox(names, { timeoutMs: TIMEOUT_MS, memoryMb: MEMORY_MB }, { cells: 4 });
  });
  afterAll(() => box.close());

  /** Calls an honest tool at a steady rate and returns the duration of each call. */
  const measure = async (): Promise<number[]> => {
    const durations: number[] = [];
    for (let i = 0; i < CALLS; i++) {
      const startedAt = performance.now();
      expect(await box.call('hello')).toMatchObject({ content: 'hello' });
      durations.push(performance.now() - startedAt);
      await letTimePass(PAUSE_MS);
    }
    return durations;
  };

  it.each(HOSTILE)('wait at most twice as long at p99: %s', async (name) => {
    const ratios: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const normal = p99(await measure());
      let isOver = false;
      const slowest = { ms: 0 };
      const attack = (async () => {
        while (!isOver) {
          const startedAt = performance.now();
          const reply = await box.call(name);
          slowest.ms = Math.max(slowest.ms, performance.now() - startedAt);
          expect(reply).toMatchObject({ outcome: 'failed' });
        }
      })();
      const loaded = p99(await measure());
      isOver = true;
      await attack;
      box.log.length = 0;
      expect(slowest.ms).toBeLessThan(TIMEOUT_MS + 500);
      ratios.push(loaded / normal);
    }
    // Other work of this machine can only make a round slower, so the best round counts.
    const best = Math.min(...ratios);
    process.stdout.write(`${name}: p99 next to it is ${best.toFixed(2)} times the normal one\n`);
    expect(best).toBeLessThan(2);
  });

  it('do not cost the service memory', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const attack = async (times: number): Promise<number> => {
      for (let i = 0; i < times; i++) for (const name of HOSTILE) await box.call(name);
      box.log.length = 0;
      collect();
      return residentMb(process.pid);
    };
    const before = await attack(3);
    const after = await attack(15);
    process.stdout.write(`the service has ${(after - before).toFixed(1)} MiB more than before\n`);
    expect(after - before).toBeLessThan(MEMORY_MB + 32);
  });
});
