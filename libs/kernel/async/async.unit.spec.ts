import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createBatcher, createCoalescer, createReadBatcher } from './batcher.js';
import { backoffDelay, retry } from './retry.js';
import { createKeyedQueue, createSerialQueue } from './serial-queue.js';
import { repeatEvery, sleep } from './sleep.js';
import { abortable, abortableWithGrace, withTimeout } from './timeout.js';
import { createWakeSignal } from './wake-signal.js';

const never = new Promise<never>(() => undefined);
const stopped = new Error('stopped');

describe('sleep', () => {
  it('rejects with the reason of a signal that aborts during the wait', async () => {
    const controller = new AbortController();
    const waiting = sleep(60_000, controller.signal);
    controller.abort(stopped);
    await expect(waiting).rejects.toBe(stopped);
  });

  it('rejects at once when the signal was aborted before', async () => {
    await expect(sleep(60_000, AbortSignal.abort(stopped))).rejects.toBe(stopped);
  });

  it('repeats work until the signal aborts', async () => {
    const controller = new AbortController();
    let runs = 0;
    const work = async (): Promise<void> => void (++runs === 3 && controller.abort(stopped));
    await repeatEvery(work, 0, controller.signal);
    expect(runs).toBe(3);
  });
});

describe('abortable', () => {
  it('rejects with the reason on abort although the work never ends', async () => {
    const controller = new AbortController();
    const waiting = abortable(never, controller.signal);
    controller.abort(stopped);
    await expect(waiting).rejects.toBe(stopped);
  });

  it('ignores a failure of the work after the abort', async () => {
    const failing = Promise.reject(new Error('late'));
    await expect(abortable(failing, AbortSignal.abort(stopped))).rejects.toBe(stopped);
  });

  it('lets work end within its grace time after the abort', async () => {
    const controller = new AbortController();
    const waiting = abortableWithGrace(
      sleep(5).then(() => 'done'),
      controller.signal,
      60_000,
    );
    controller.abort(stopped);
    await expect(waiting).resolves.toBe('done');
  });

  it('rejects after the grace time, also when the signal was aborted before', async () => {
    await expect(abortableWithGrace(never, AbortSignal.abort(stopped), 1)).rejects.toBe(stopped);
  });

  it('rejects with the given error after a timeout', async () => {
    await expect(withTimeout(never, 1, () => stopped)).rejects.toBe(stopped);
  });
});

describe('retry', () => {
  const policy = { firstMs: 0, maxMs: 0, isRetryable: (error: unknown) => error !== stopped };

  it('retries until the work succeeds', async () => {
    const attempts: number[] = [];
    let failures = 2;
    const work = async (): Promise<string> => {
      if (failures-- > 0) throw new Error('not yet');
      return 'done';
    };
    await expect(retry(work, { ...policy, onRetry: (_, attempt) => attempts.push(attempt) })).resolves.toBe(
      'done',
    );
    expect(attempts).toEqual([1, 2]);
  });

  it('throws an error that is not retryable at once', async () => {
    let calls = 0;
    const work = (): Promise<never> => (calls++, Promise.reject(stopped));
    await expect(retry(work, policy)).rejects.toBe(stopped);
    expect(calls).toBe(1);
  });

  it('throws the last error once the time is over', async () => {
    const late = new Error('still down');
    await expect(retry(() => Promise.reject(late), { ...policy, firstMs: 1, withinMs: 0 })).rejects.toBe(
      late,
    );
  });

  it('rejects with the reason of its signal, during an attempt and between attempts', async () => {
    const during = new AbortController();
    const running = retry(() => never, { ...policy, signal: during.signal });
    during.abort(stopped);
    await expect(running).rejects.toBe(stopped);
    const between = new AbortController();
    const waiting = retry(() => Promise.reject(new Error('down')), {
      ...policy,
      firstMs: 60_000,
      maxMs: 60_000,
      signal: between.signal,
      onRetry: () => queueMicrotask(() => between.abort(stopped)),
    });
    await expect(waiting).rejects.toBe(stopped);
  });

  it('doubles its delay and never passes the longest one', () =>
    fc.assert(
      fc.property(fc.nat(10_000), fc.nat(10_000), fc.nat(5_000), (firstMs, maxMs, attempt) => {
        const delay = backoffDelay({ firstMs, maxMs }, attempt);
        expect(delay).toBeLessThanOrEqual(maxMs);
        expect(backoffDelay({ firstMs, maxMs }, attempt + 1)).toBeGreaterThanOrEqual(delay);
      }),
    ));
});

describe('createSerialQueue', () => {
  it('runs one piece of work at a time, in order, also after a failure', async () => {
    const queue = createSerialQueue();
    const order: string[] = [];
    const record = (name: string) => async (): Promise<void> => {
      order.push(`${name} begins`);
      await sleep(1);
      order.push(`${name} ends`);
    };
    const failed = queue(() => Promise.reject(stopped));
    await Promise.all([expect(failed).rejects.toBe(stopped), queue(record('a')), queue(record('b'))]);
    expect(order).toEqual(['a begins', 'a ends', 'b begins', 'b ends']);
  });
});

describe('createKeyedQueue', () => {
  it('runs work of one key one after another and work of other keys next to it', async () => {
    const queue = createKeyedQueue(10);
    const order: string[] = [];
    const gate = Promise.withResolvers<void>();
    queue.run('a', () => gate.promise.then(() => void order.push('a1')));
    queue.run('a', async () => void order.push('a2'));
    queue.run('b', async () => void order.push('b1'));
    queue.run(undefined, async () => void order.push('no key'));
    await sleep(1);
    gate.resolve();
    await queue.waitUntilIdle();
    expect(order).toEqual(['b1', 'no key', 'a1', 'a2']);
  });

  it('has capacity again once enough work has ended', async () => {
    const queue = createKeyedQueue(1);
    const gate = Promise.withResolvers<void>();
    queue.run('a', () => gate.promise);
    let hasCapacity = false;
    const capacity = queue.waitForCapacity().then(() => (hasCapacity = true));
    await sleep(1);
    expect(hasCapacity).toBe(false);
    gate.resolve();
    await capacity;
    expect(queue.size).toBe(0);
  });
});

describe('createBatcher', () => {
  it('writes the items of one event-loop round together, and later ones in the next batch', async () => {
    const batches: (readonly number[])[] = [];
    const gate = Promise.withResolvers<void>();
    const add = createBatcher<number>(async (items) => {
      batches.push(items);
      if (batches.length === 1) await gate.promise;
    });
    const first = [add(1), add(2)];
    await sleep(1);
    const second = add(3);
    gate.resolve();
    await Promise.all([...first, second]);
    expect(batches).toEqual([[1, 2], [3]]);
  });

  it('rejects for the items of a failed write', async () => {
    const add = createBatcher<number>(() => Promise.reject(stopped));
    await expect(add(1)).rejects.toBe(stopped);
  });
});

describe('createReadBatcher', () => {
  it('answers questions that arrive during a run in the next ones, each of at most the limit', async () => {
    const batches: number[][] = [];
    const begun = Promise.withResolvers<void>();
    const ending = Promise.withResolvers<void>();
    const ask = createReadBatcher<number, number>(async (questions) => {
      batches.push([...questions]);
      begun.resolve();
      await ending.promise;
      return questions.map((question) => question * 10);
    }, 2);
    const first = ask(1);
    await begun.promise;
    const later = [ask(2), ask(3), ask(4)];
    ending.resolve();
    expect(await Promise.all([first, ...later])).toEqual([10, 20, 30, 40]);
    expect(batches).toEqual([[1], [2, 3], [4]]);
  });

  it('rejects the questions of a failed run only', async () => {
    const ask = createReadBatcher<number, number>((questions) => {
      if (questions.includes(1)) return Promise.reject(stopped);
      if (questions.includes(2)) throw stopped;
      return Promise.resolve(questions);
    }, 1);
    const answers = await Promise.allSettled([ask(1), ask(2), ask(3)]);
    expect(answers).toMatchObject([{ reason: stopped }, { reason: stopped }, { value: 3 }]);
  });
});

describe('createCoalescer', () => {
  it('shares the next run between calls that arrive during one, and never the current run', async () => {
    let runs = 0;
    const gate = Promise.withResolvers<void>();
    const call = createCoalescer(async () => {
      const run = ++runs;
      if (run === 1) await gate.promise;
      return run;
    });
    const calls = [call('a'), call('a'), call('a')];
    gate.resolve();
    await expect(Promise.all(calls)).resolves.toEqual([1, 2, 2]);
  });

  it('runs again after a failure, which only its own callers see', async () => {
    let runs = 0;
    const call = createCoalescer(() => (++runs === 1 ? Promise.reject(stopped) : Promise.resolve(runs)));
    const [first, second] = [call('a'), call('a')];
    await expect(first).rejects.toBe(stopped);
    await expect(second).resolves.toBe(2);
  });
});

describe('createWakeSignal', () => {
  it('ends a wait early', async () => {
    const signal = createWakeSignal();
    const waiting = signal.wait(60_000);
    signal.wake();
    await waiting;
  });

  it('remembers one wake without a waiter', async () => {
    const signal = createWakeSignal();
    signal.wake();
    await signal.wait(60_000);
    let isOver = false;
    const second = signal.wait(20).then(() => (isOver = true));
    await sleep(1);
    expect(isOver).toBe(false);
    await second;
  });
});
