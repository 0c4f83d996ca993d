import { describe, expect, it } from '@jest/globals';
import { CallQueue } from './call-queue.js';

const NEVER = new AbortController().signal;

/** Enters calls of workspaces, in order. Returns the order in which they got their places. */
const fill = (queue: CallQueue, workspaces: readonly string[]) => {
  const order: string[] = [];
  const leaves: (() => void)[] = [];
  const entered = workspaces.map(async (workspace) => {
    const leave = await queue.enter(workspace, NEVER);
    order.push(workspace);
    leaves.push(leave);
  });
  const leaveNext = async (): Promise<void> => {
    leaves.shift()?.();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { order, entered, leaveNext };
};

describe('a queue of calls', () => {
  it('admits as many calls as it has places, and the next ones in turn', async () => {
    const queue = new CallQueue(2);
    const { order, leaveNext, entered } = fill(queue, ['a', 'b', 'c', 'd']);
    await new Promise((resolve) => setImmediate(resolve));
    expect(order).toEqual(['a', 'b']);
    await leaveNext();
    expect(order).toEqual(['a', 'b', 'c']);
    await leaveNext();
    await Promise.all(entered);
    await leaveNext();
    await leaveNext();
    expect(queue.isIdle).toBe(true);
  });

  it('lets workspaces take turns, however many calls one of them has', async () => {
    const { order, leaveNext, entered } = fill(new CallQueue(1), ['a', 'a', 'a', 'a', 'b', 'b', 'c']);
    await new Promise((resolve) => setImmediate(resolve));
    for (let n = 0; n < 6; n += 1) await leaveNext();
    await Promise.all(entered);
    expect(order).toEqual(['a', 'a', 'b', 'c', 'a', 'b', 'a']);
  });

  it('gives the place of a call that was cancelled while it waited to another one', async () => {
    const queue = new CallQueue(1);
    const leave = await queue.enter('a', NEVER);
    const cancel = new AbortController();
    const cancelled = queue.enter('a', cancel.signal);
    const next = queue.enter('b', NEVER);
    cancel.abort(new Error('cancelled'));
    await expect(cancelled).rejects.toThrow('cancelled');
    leave();
    leave();
    (await next)();
    expect(queue.isIdle).toBe(true);
  });

  it('refuses a call whose signal has aborted already', async () => {
    const queue = new CallQueue(1);
    await expect(queue.enter('a', AbortSignal.abort(new Error('over')))).rejects.toThrow('over');
    expect(queue.isIdle).toBe(true);
  });
});
