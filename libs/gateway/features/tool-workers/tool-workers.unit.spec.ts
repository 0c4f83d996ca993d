import { describe, expect, it } from '@jest/globals';
import type { RemoteCallEnd } from '@antiphon/contracts/sandbox';
import { ToolWorkers } from './tool-workers.js';
import type { RemoteCallRequest, Worker } from './tool-workers.js';

/** A program whose calls end when the test says so. */
class FakeWorker implements Worker {
  readonly running = new Map<string, (end: RemoteCallEnd) => void>();
  readonly workspace = 'default';
  readonly tools = new Map([['weather', 'a']]);

  constructor(
    readonly id: string,
    readonly concurrency = 2,
  ) {}

  get inFlight(): number {
    return this.running.size;
  }
  get mayTakeMore(): boolean {
    return this.inFlight < this.concurrency;
  }
  run({ attemptId }: RemoteCallRequest): Promise<RemoteCallEnd> {
    return new Promise((resolve) => this.running.set(attemptId, resolve));
  }
  cancel(attemptId: string): boolean {
    return this.end(attemptId, { end: 'cancelled' });
  }
  end(attemptId: string, end: RemoteCallEnd = { end: 'result', content: 'x', isError: false }): boolean {
    const resolve = this.running.get(attemptId);
    this.running.delete(attemptId);
    resolve?.(end);
    return resolve !== undefined;
  }
}

let calls = 0;
const call = (more: Partial<RemoteCallRequest> = {}): RemoteCallRequest => {
  const id = `00000000-0000-4000-8000-${String(++calls).padStart(12, '0')}`;
  const ids = { callId: id, attemptId: id, sessionId: id, idempotencyKey: id };
  const tool = { workspace: 'default', name: 'weather', digest: 'a', input: '{}' };
  return { ...ids, ...tool, epoch: 1, timeoutMs: 5_000, ...more };
};

describe('programs of a gateway', () => {
  it('get calls by their load', async () => {
    const [small, large] = [new FakeWorker('small', 1), new FakeWorker('large', 3)];
    const workers = new ToolWorkers();
    workers.put(small);
    workers.put(large);
    for (let n = 0; n < 4; n++) void workers.run(call());
    expect([small.inFlight, large.inFlight]).toEqual([1, 3]);
  });

  it('get a waiting call as soon as one of them is free', async () => {
    const worker = new FakeWorker('one', 1);
    const workers = new ToolWorkers();
    workers.put(worker);
    const [first, second] = [call(), call()];
    const ends = [workers.run(first), workers.run(second)];
    expect([...worker.running.keys()]).toEqual([first.attemptId]);
    worker.end(first.attemptId);
    await ends[0];
    expect([...worker.running.keys()]).toEqual([second.attemptId]);
    worker.end(second.attemptId);
    expect(await ends[1]).toMatchObject({ end: 'result' });
  });

  it('get no call of another workspace or version', async () => {
    const workers = new ToolWorkers();
    workers.put(new FakeWorker('one'));
    const absent = { end: 'not_sent', reason: 'absent' };
    expect(await workers.run(call({ workspace: 'other' }))).toEqual(absent);
    expect(await workers.run(call({ digest: 'b' }))).toEqual(absent);
  });

  it('leave a call unsent that waits too long, is cancelled, or loses the last program', async () => {
    const worker = new FakeWorker('one', 1);
    const workers = new ToolWorkers();
    workers.put(worker);
    void workers.run(call());
    expect(await workers.run(call({ timeoutMs: 10 }))).toEqual({ end: 'not_sent', reason: 'busy' });
    const cancelled = call();
    const ends = [workers.run(cancelled), workers.run(call())];
    workers.cancel(cancelled.attemptId);
    expect(await ends[0]).toEqual({ end: 'not_sent', reason: 'busy' });
    workers.remove(worker);
    expect(await ends[1]).toEqual({ end: 'not_sent', reason: 'absent' });
  });

  it('take no further call once the gateway stops', async () => {
    const worker = new FakeWorker('one');
    const workers = new ToolWorkers();
    workers.put(worker);
    const running = call();
    void workers.run(running);
    expect(workers.stop()).toBe(1);
    expect(await workers.run(call())).toEqual({ end: 'not_sent', reason: 'absent' });
    worker.end(running.attemptId);
    expect(workers.stop()).toBe(0);
  });

  it('are counted by tool and version, and each change is told', () => {
    const changed: string[] = [];
    const workers = new ToolWorkers((workspace) => changed.push(workspace));
    const [one, two] = [new FakeWorker('one'), new FakeWorker('two')];
    workers.put(one);
    workers.put(two);
    expect(workers.counts('default')).toEqual([{ name: 'weather', digest: 'a', workers: 2 }]);
    workers.remove(two);
    expect(workers.counts('default')).toEqual([{ name: 'weather', digest: 'a', workers: 1 }]);
    expect(changed).toEqual(['default', 'default', 'default']);
  });
});
