import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { until } from '@antiphon/testing';
import { cells, startSandbox } from '../testing/sandbox.fixture.spec.js';
import type { TestSandbox } from '../testing/sandbox.fixture.spec.js';

jest.setTimeout(60_000);

const onLinux = process.platform === 'linux' ? describe : describe.skip;
const HELLO = { outcome: 'completed', content: 'hello' };

describe('CellPool', () => {
  let box: TestSandbox;
  const start = async (...options: Parameters<typeof startSandbox>) => (box = await startSandbox(...options));
  afterEach(() => box.close());

  it('leaves a cell to other plug-ins when one loops', async () => {
    await start(['loop', 'hello'], { timeoutMs: 60_000 });
    const callIds = [randomUUID(), randomUUID(), randomUUID()];
    const loops = callIds.map((callId) => box.call('loop', {}, { callId }));
    await until(() => box.sandbox.pool.stats().busy > 0);
    for (let i = 0; i < 20; i++) expect(await box.call('hello')).toMatchObject(HELLO);
    expect(box.sandbox.pool.stats()).toMatchObject({ busy: 1, queued: 2 });
    callIds.reverse().forEach((callId) => box.cancel(callId));
    await Promise.all(loops);
  });

  it('limits waiting calls and fails the others as unavailable', async () => {
    await start(['loop'], { timeoutMs: 300 }, { maxQueued: 2 });
    const replies = await Promise.all([1, 2, 3, 4, 5].map(() => box.call('loop')));
    const codes = replies.map((reply) => reply.outcome === 'failed' && reply.code).sort();
    expect(codes).toEqual([...Array(3).fill('TOOL.TIMEOUT'), ...Array(2).fill('TOOL.UNAVAILABLE')]);
  });

  it('ends running and waiting calls at once when cancelled', async () => {
    await start(['loop', 'hello'], { timeoutMs: 60_000 });
    const [running, waiting] = [randomUUID(), randomUUID()];
    const calls = [running, waiting].map((callId) => box.call('loop', {}, { callId }));
    await until(() => box.sandbox.pool.stats().busy === 1 && box.sandbox.pool.stats().queued === 1);
    for (const callId of [waiting, running]) box.cancel(callId);
    expect(await Promise.all(calls)).toEqual([
      expect.objectContaining({ outcome: 'failed', code: 'TOOL.CANCELLED' }),
      expect.objectContaining({ outcome: 'failed', code: 'TOOL.CANCELLED' }),
    ]);
    expect(await box.call('hello')).toMatchObject(HELLO);
  });

  it('runs a call once for two concurrent requests', async () => {
    await start(['hello']);
    const callId = randomUUID();
    const [first, second] = await Promise.all([1, 2].map(() => box.call('hello', {}, { callId })));
    expect(second).toBe(first);
    await expect(box.call('hello', { other: true }, { callId })).rejects.toMatchObject({
      code: 'TOOL.CALL_ID_REUSED',
    });
  });

  onLinux('when another process kills cells', () => {
    it('fails only the call of the killed cell', async () => {
      await start(['loop', 'hello'], { timeoutMs: 60_000 });
      const call = box.call('loop');
      await until(() => box.sandbox.pool.stats().busy === 1);
      for (const pid of cells()) process.kill(pid, 'SIGKILL');
      expect(await call).toMatchObject({
        outcome: 'failed',
        code: 'TOOL.TRAP',
        message: expect.stringContaining('SIGKILL'),
      });
      await until(() => box.sandbox.pool.stats().cells === 2);
      expect(await box.call('hello')).toMatchObject(HELLO);
    });

    it('opens new cells without a call', async () => {
      await start(['hello']);
      const before = cells();
      for (const pid of before) process.kill(pid, 'SIGKILL');
      await until(() => cells().length === 2 && cells().every((pid) => !before.includes(pid)));
      await until(() => box.sandbox.pool.stats().cells === 2);
      expect(await box.call('hello')).toMatchObject(HELLO);
    });

    it('kills all cells on close during a call', async () => {
      await start(['loop'], { timeoutMs: 60_000 });
      const lost = expect(box.call('loop')).rejects.toMatchObject({
        kind: 'transient',
        code: 'SANDBOX.LOST',
      });
      await until(() => box.sandbox.pool.stats().busy === 1);
      await box.sandbox.close();
      expect(cells()).toEqual([]);
      await lost;
    });
  });
});
