import { describe, expect, it } from '@jest/globals';
import type { CellJob } from '../cell/run-in-cell.js';
import { JobQueue } from './job-queue.js';

const job = (plugin: string, signal?: AbortSignal): CellJob => ({
  plugin,
  image: { digest: '', bytes: new Uint8Array(0) },
  entry: 'handle_tool_call',
  input: new Uint8Array(0),
  timeoutMs: 1_000,
  listener: { onLog: () => undefined, onFlood: () => undefined, onSuppressed: () => undefined },
  ...(signal ? { signal } : {}),
});
const queueOf = (more = {}) => new JobQueue({ maxQueued: 3, maxWaitMs: 60_000, maxPerPlugin: 1, ...more });

describe('JobQueue', () => {
  it('returns jobs in order and skips a plug-in at its limit', () => {
    const queue = queueOf();
    for (const plugin of ['a', 'a', 'b']) void queue.add(job(plugin));
    const first = queue.take();
    expect(first?.job.plugin).toBe('a');
    expect(queue.take()?.job.plugin).toBe('b');
    expect(queue.take()).toBeNull();
    first?.release();
    expect(queue.take()?.job.plugin).toBe('a');
    queue.close('done');
  });

  it('lets sessions of a plug-in take turns', () => {
    const queue = queueOf({ maxQueued: 20 });
    const add = (plugin: string, session: string) => void queue.add({ ...job(plugin), session });
    const order: string[] = [];
    const step = (): ReturnType<typeof queue.take> => {
      const taken = queue.take();
      if (taken) order.push(`${taken.job.plugin} ${taken.job.session}`);
      return taken;
    };
    for (let i = 0; i < 10; i++) add('page', 'slow');
    const hanging = step();
    add('page', 'quick');
    add('sum', 'quick');
    expect(step()?.job.plugin).toBe('sum');
    hanging?.release();
    for (let taken = step(); taken; taken = step()) taken.release();
    expect(order.slice(0, 4)).toEqual(['page slow', 'sum quick', 'page quick', 'page slow']);
    expect(order).toHaveLength(12);
    queue.close('done');
  });

  it('serves a session with many calls among new sessions', () => {
    const queue = queueOf({ maxQueued: 20 });
    const add = (session: string) => void queue.add({ ...job('page'), session });
    for (let i = 0; i < 3; i++) add('many');
    const order: (string | undefined)[] = [];
    for (let i = 0; i < 6; i++) {
      const taken = queue.take();
      order.push(taken?.job.session);
      add(`new ${i}`);
      taken?.release();
    }
    expect(order.filter((session) => session === 'many').length).toBeGreaterThanOrEqual(3);
    queue.close('done');
  });

  it('refuses a job above the maximum', async () => {
    const queue = queueOf();
    for (let i = 0; i < 3; i++) void queue.add(job('a'));
    expect(await queue.add(job('a'))).toMatchObject({ end: 'unavailable' });
    queue.close('done');
  });

  it('refuses a job after the maximum wait', async () => {
    const queue = queueOf({ maxWaitMs: 5 });
    expect(await queue.add(job('a'))).toEqual({
      end: 'unavailable',
      message: 'no cell became free within 5 ms',
    });
    expect(queue.length).toBe(0);
  });

  it('removes a cancelled job', async () => {
    const queue = queueOf();
    const controller = new AbortController();
    const answer = queue.add(job('a', controller.signal));
    controller.abort();
    expect(await answer).toEqual({ end: 'cancelled' });
    expect(queue.take()).toBeNull();
  });

  it('refuses all jobs after close', async () => {
    const queue = queueOf();
    const waiting = queue.add(job('a'));
    queue.close('stopping');
    expect(await waiting).toEqual({ end: 'unavailable', message: 'stopping' });
    expect(await queue.add(job('a'))).toEqual({ end: 'unavailable', message: 'stopping' });
  });
});
