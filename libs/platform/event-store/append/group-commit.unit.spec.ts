import { describe, expect, it } from '@jest/globals';
import { conflict, transient } from '@antiphon/kernel';
import { freshStream, toStream } from '@antiphon/testing';
import { type AppendOutcome, resultOf } from './append-outcome.js';
import { createGroupCommit, type GroupCommitOptions, takeBatch } from './group-commit.js';
import { prepareAppend, type PreparedAppend } from './prepare-append.js';

const BOUNDS: GroupCommitOptions = {
  maxRequests: 4,
  maxEvents: 6,
  maxBytes: 4_000,
  maxQueued: 8,
  maxQueuedBytes: 100_000,
};
const prepared = (streamId = freshStream(), count = 1): PreparedAppend =>
  prepareAppend({ workspace: 'w', streams: [toStream(streamId, 'any', count)] });
const done = (): AppendOutcome => ({ ok: true, result: resultOf('appended', [1], 1, 1) });

const idsOf = (batch: readonly { prepared: PreparedAppend }[]): string[] =>
  batch.map(({ prepared: { streams } }) => streams[0]!.streamId);

describe('takeBatch', () => {
  const queueOf = (...streams: string[]): { prepared: PreparedAppend }[] =>
    streams.map((streamId) => ({ prepared: prepared(streamId) }));

  it('stops at the number of requests, and keeps the order of what is left', () => {
    const queue = queueOf('session-1', 'session-2', 'session-3', 'session-4', 'session-5', 'session-6');
    expect(idsOf(takeBatch(queue, BOUNDS))).toEqual(['session-1', 'session-2', 'session-3', 'session-4']);
    expect(idsOf(queue)).toEqual(['session-5', 'session-6']);
  });

  it('leaves a second request of a stream, and what shares anything with it, to later batches', () => {
    const queue = queueOf('session-1', 'session-1', 'session-2', 'session-1');
    expect(idsOf(takeBatch(queue, BOUNDS))).toEqual(['session-1', 'session-2']);
    expect(idsOf(takeBatch(queue, BOUNDS))).toEqual(['session-1']);
    expect(idsOf(takeBatch(queue, BOUNDS))).toEqual(['session-1']);
  });

  it('lets nobody overtake a request of the same stream that waits', () => {
    const both = prepareAppend({
      workspace: 'w',
      streams: [toStream('session-1', 'any'), toStream('session-2', 'any')],
    });
    const queue = [
      { prepared: prepared('session-1') },
      { prepared: both },
      { prepared: prepared('session-2') },
    ];
    expect(idsOf(takeBatch(queue, BOUNDS))).toEqual(['session-1']);
    expect(takeBatch(queue, BOUNDS)[0]?.prepared).toBe(both);
  });

  it('stops at the number of events and of bytes, but takes one request whatever its size', () => {
    const queue = [
      { prepared: prepared(undefined, 9) },
      { prepared: prepared(undefined, 4) },
      { prepared: prepared(undefined, 4) },
    ];
    expect(takeBatch(queue, BOUNDS)).toHaveLength(1);
    expect(takeBatch(queue, BOUNDS)).toHaveLength(1);
    expect(takeBatch(queue, { ...BOUNDS, maxBytes: 1 })).toHaveLength(1);
    expect(queue).toHaveLength(0);
  });
});

describe('group commit', () => {
  it('bounds the bytes that wait', async () => {
    const group = createGroupCommit(async (batch) => batch.map(done), { ...BOUNDS, maxQueuedBytes: 300 });
    const settled = await Promise.allSettled(Array.from({ length: 5 }, () => group.append(prepared())));
    expect(settled.map(({ status }) => status)).toEqual([
      'fulfilled',
      'fulfilled',
      'rejected',
      'rejected',
      'rejected',
    ]);
    expect(await group.append(prepared())).toMatchObject({ outcome: 'appended' });
  });

  it('sends what arrives while a batch is on its way together in the next', async () => {
    const sizes: number[] = [];
    const waiting: (() => void)[] = [];
    const group = createGroupCommit(async (batch) => {
      sizes.push(batch.length);
      await new Promise<void>((resolve) => waiting.push(resolve));
      return batch.map(done);
    }, BOUNDS);
    const first = group.append(prepared());
    while (waiting.length === 0) await new Promise((resolve) => setImmediate(resolve));
    const rest = [group.append(prepared()), group.append(prepared()), group.append(prepared())];
    waiting.shift()?.();
    await first;
    while (waiting.length === 0) await new Promise((resolve) => setImmediate(resolve));
    waiting.shift()?.();
    await Promise.all(rest);
    expect(sizes).toEqual([1, 3]);
  });

  it('gives each request its own outcome', async () => {
    const outcomes: AppendOutcome[] = [
      done(),
      { ok: false, error: conflict('LOG.VERSION_CONFLICT', 'no') },
      done(),
    ];
    const group = createGroupCommit(async () => outcomes, BOUNDS);
    const settled = await Promise.allSettled(
      [prepared(), prepared(), prepared()].map((one) => group.append(one)),
    );
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  });

  it('fails a whole batch when it could not be sent, and goes on with the next', async () => {
    let calls = 0;
    const group = createGroupCommit(async (batch) => {
      if (calls++ === 0) throw transient('LOG.UNAVAILABLE', 'away');
      return batch.map(done);
    }, BOUNDS);
    const first = await Promise.allSettled([group.append(prepared()), group.append(prepared())]);
    expect(first.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(await group.append(prepared())).toMatchObject({ outcome: 'appended' });
  });

  it('refuses more than may wait, and everything after it was closed, but answers what waits', async () => {
    const group = createGroupCommit(async (batch) => batch.map(done), BOUNDS);
    const appends = Array.from({ length: 10 }, () => group.append(prepared()));
    const closing = group.close();
    const settled = await Promise.allSettled([...appends, group.append(prepared())]);
    await closing;
    expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(8);
    for (const one of settled)
      if (one.status === 'rejected')
        expect(one.reason).toMatchObject({ kind: 'transient', code: 'LOG.UNAVAILABLE' });
  });
});
