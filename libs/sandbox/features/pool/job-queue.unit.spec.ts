import { describe, expect, it } from '@jest/globals';
import type { CellJob } from '../cell/run-in-cell.js';
import { createJobQueue } from './job-queue.js';

const job = (plugin: string, signal?: AbortSignal): CellJob => ({
  plugin,
  image: { digest: '', bytes: new Uint8Array(0) },
  entry: 'handle_tool_call',
  input: new Uint8Array(0),
  timeoutMs: 1_000,
  listener: { onLog: () => undefined, onFlood: () => undefined, onSuppressed: () => undefined },
  ...(signal ? { signal } : {}),
});
const queueOf = (more = {}) => createJobQueue({ maxQueued: 3, maxWaitMs: 60_000, maxPerPlugin: 1, ...more });

describe('the queue for cells', () => {
  it('gives jobs in order, and passes over a plug-in that has its share', () => {
    const queue = queueOf();
    for (const plugin of ['a', 'a', 'b']) void queue.add(job(plugin));
    const first = queue.take();
    expect(first?.job.plugin).toBe('a');
    expect(queue.take()?.job.plugin).toBe('b');
    expect(queue.take()).toBeNull();
    first?.done();
    expect(queue.take()?.job.plugin).toBe('a');
    queue.close('done');
  });

  it('is bounded', async () => {
    const queue = queueOf();
    for (let i = 0; i < 3; i++) void queue.add(job('a'));
    expect(await queue.add(job('a'))).toMatchObject({ end: 'unavailable' });
    queue.close('done');
  });

  it('keeps nobody waiting for ever', async () => {
    const queue = queueOf({ maxWaitMs: 5 });
    expect(await queue.add(job('a'))).toEqual({
      end: 'unavailable',
      message: 'no cell became free within 5 ms',
    });
    expect(queue.length()).toBe(0);
  });

  it('lets go of a job that nobody waits for', async () => {
    const queue = queueOf();
    const controller = new AbortController();
    const answer = queue.add(job('a', controller.signal));
    controller.abort();
    expect(await answer).toEqual({ end: 'cancelled' });
    expect(queue.take()).toBeNull();
  });

  it('refuses everything once closed', async () => {
    const queue = queueOf();
    const waiting = queue.add(job('a'));
    queue.close('stopping');
    expect(await waiting).toEqual({ end: 'unavailable', message: 'stopping' });
    expect(await queue.add(job('a'))).toEqual({ end: 'unavailable', message: 'stopping' });
  });
});
