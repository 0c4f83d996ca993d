import { afterEach, describe, expect, it } from '@jest/globals';
import { createMemoryLeaseStore } from '@antiphon/event-store/testing';
import { silentLogger } from '@antiphon/observability';
import { until } from '@antiphon/testing';
import { LeaderLoop } from './leader-loop.js';

const LEASE_MS = 60_000;

let running: { readonly stop: () => Promise<void> }[] = [];
afterEach(async () => {
  await Promise.all(running.map(({ stop }) => stop()));
  running = [];
});

/** Starts a loop that records its calls. Its first round fails if `fails`. */
const start = (leases = createMemoryLeaseStore(), owner = 'one', fails = false) => {
  const calls: string[] = [];
  const warned: string[] = [];
  const logger = { ...silentLogger, warn: (_: object, name: string) => void warned.push(name) };
  const loop = new LeaderLoop({
    ...{ leases, owner, name: 'work', leaseMs: LEASE_MS, pollMs: 5, retryMs: 1 },
    logger: logger as typeof silentLogger,
    warnings: { round: 'work failed', release: 'work lease not released' },
  });
  const stopping = new AbortController();
  const ended = loop.run(stopping.signal, {
    round: async ({ epoch }) => {
      calls.push(`round of term ${epoch}`);
      if (fails && calls.length < 4) throw new Error('the database is away');
    },
    endTerm: () => void calls.push('no term'),
    stop: async () => void calls.push('stop'),
  });
  const process = { loop, calls, warned, stop: () => (stopping.abort(), ended) };
  running.push(process);
  return process;
};

describe('the work of a leader', () => {
  it('runs rounds in one process at a time, and in another one after its stop', async () => {
    const leases = createMemoryLeaseStore();
    const first = start(leases);
    await until(() => first.calls.length > 3);
    const second = start(leases, 'two');
    await until(() => second.calls.length > 3);
    expect(first.calls.slice(0, 3)).toEqual(['no term', 'round of term 1', 'round of term 1']);
    expect(new Set(second.calls)).toEqual(new Set(['no term']));
    expect([first.loop.isLeader(), second.loop.isLeader()]).toEqual([true, false]);
    await first.stop();
    expect(first.calls.at(-1)).toBe('stop');
    await until(() => second.calls.includes('round of term 2'));
    expect(second.loop.fence()).toMatchObject({ lease: 'work', epoch: 2 });
  });

  it('continues after a failed round, and logs an outage once', async () => {
    const { calls, warned } = start(undefined, undefined, true);
    await until(() => calls.length > 5);
    expect(warned).toEqual(['work failed']);
  });
});
