import { describe, expect, it } from '@jest/globals';
import { conflict, transient } from '@antiphon/kernel';
import { freshStream, toStream } from '@antiphon/testing';
import { type AppendOutcome, createAppendResult } from './append-outcome.js';
import { GroupCommit, type GroupCommitOptions, takeBatch } from './group-commit.js';
import { prepareAppend, type PreparedAppend } from './prepare-append.js';

const LIMITS: GroupCommitOptions = {
  maxRequests: 4,
  maxEvents: 6,
  maxBytes: 4_000,
  maxQueued: 8,
  maxQueuedBytes: 100_000,
};
const prepared = (streamId = freshStream(), count = 1): PreparedAppend =>
  prepareAppend({ workspace: 'w', streams: [toStream(streamId, 'any', count)] });
const done = (): AppendOutcome => ({ ok: true, result: createAppendResult('appended', [1], 1, 1) });

const idsOf = (batch: readonly { prepared: PreparedAppend }[]): string[] =>
  batch.map(({ prepared: { streams } }) => streams[0]!.streamId);

describe('takeBatch', () => {
  const queueOf = (...streams: string[]): { prepared: PreparedAppend }[] =>
    streams.map((streamId) => ({ prepared: prepared(streamId) }));

  it('stops at the maximum number of requests and keeps the order of the others', () => {
    const queue = queueOf('session-1', 'session-2', 'session-3', 'session-4', 'session-5', 'session-6');
    expect(idsOf(takeBatch(queue, LIMITS))).toEqual(['session-1', 'session-2', 'session-3', 'session-4']);
    expect(idsOf(queue)).toEqual(['session-5', 'session-6']);
  });

  it('postpones a second request of the same stream', () => {
    const queue = queueOf('session-1', 'session-1', 'session-2', 'session-1');
    expect(idsOf(takeBatch(queue, LIMITS))).toEqual(['session-1', 'session-2']);
    expect(idsOf(takeBatch(queue, LIMITS))).toEqual(['session-1']);
    expect(idsOf(takeBatch(queue, LIMITS))).toEqual(['session-1']);
  });

  it('keeps the order of requests that share a stream with a postponed one', () => {
    const both = prepareAppend({
      workspace: 'w',
      streams: [toStream('session-1', 'any'), toStream('session-2', 'any')],
    });
    const queue = [
      { prepared: prepared('session-1') },
      { prepared: both },
      { prepared: prepared('session-2') },
    ];
    expect(idsOf(takeBatch(queue, LIMITS))).toEqual(['session-1']);
    expect(takeBatch(queue, LIMITS)[0]?.prepared).toBe(both);
  });

  it('postpones an append to a guarded stream and a guard of an appended one, and joins guards', () => {
    const guarded = (own: string) => {
      const guards = [{ streamId: 'file-tree-1', version: 1 }];
      return { prepared: prepareAppend({ workspace: 'w', streams: [toStream(own, 'any')], guards }) };
    };
    const tree = { prepared: prepared('file-tree-1') };
    const queue = [guarded('session-1'), guarded('session-2'), tree, guarded('session-3')];
    expect(idsOf(takeBatch(queue, LIMITS))).toEqual(['session-1', 'session-2']);
    expect(idsOf(takeBatch(queue, LIMITS))).toEqual(['file-tree-1']);
    expect(idsOf(takeBatch(queue, LIMITS))).toEqual(['session-3']);
  });

  it('stops at the maximum of events and bytes, but takes at least one request', () => {
    const queue = [
      { prepared: prepared(undefined, 9) },
      { prepared: prepared(undefined, 4) },
      { prepared: prepared(undefined, 4) },
    ];
    expect(takeBatch(queue, LIMITS)).toHaveLength(1);
    expect(takeBatch(queue, LIMITS)).toHaveLength(1);
    expect(takeBatch(queue, { ...LIMITS, maxBytes: 1 })).toHaveLength(1);
    expect(queue).toHaveLength(0);
  });
});

describe('group commit', () => {
  it('rejects an append when too many bytes wait', async () => {
    const group = new GroupCommit(async (batch) => batch.map(done), { ...LIMITS, maxQueuedBytes: 300 });
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

  it('joins requests that arrive during a write in the next batch', async () => {
    const sizes: number[] = [];
    const waiting: (() => void)[] = [];
    const group = new GroupCommit(async (batch) => {
      sizes.push(batch.length);
      await new Promise<void>((resolve) => waiting.push(resolve));
      return batch.map(done);
    }, LIMITS);
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

  it('sends the next append of a caller that was alone at once', async () => {
    let sent = 0;
    const group = new GroupCommit(async (batch) => {
      sent += batch.length;
      return batch.map(done);
    }, LIMITS);
    const first = group.append(prepared());
    expect(sent).toBe(0);
    await first;
    const second = group.append(prepared());
    expect(sent).toBe(2);
    await second;
  });

  it('settles each request with its own outcome', async () => {
    const outcomes: AppendOutcome[] = [
      done(),
      { ok: false, error: conflict('LOG.VERSION_CONFLICT', 'no') },
      done(),
    ];
    const group = new GroupCommit(async () => outcomes, LIMITS);
    const settled = await Promise.allSettled(
      [prepared(), prepared(), prepared()].map((one) => group.append(one)),
    );
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  });

  it('rejects a whole batch that could not be sent, and writes the next one', async () => {
    let calls = 0;
    const group = new GroupCommit(async (batch) => {
      if (calls++ === 0) throw transient('LOG.UNAVAILABLE', 'away');
      return batch.map(done);
    }, LIMITS);
    const first = await Promise.allSettled([group.append(prepared()), group.append(prepared())]);
    expect(first.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(await group.append(prepared())).toMatchObject({ outcome: 'appended' });
  });

  it('rejects appends beyond the limit and after close, but settles queued ones', async () => {
    const group = new GroupCommit(async (batch) => batch.map(done), LIMITS);
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
