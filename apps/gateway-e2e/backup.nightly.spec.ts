import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectClient, type SocketClient } from '@antiphon/testing/client';
import type { TestStack } from '@antiphon/testing/stack';
import { startMockModel, type MockModel } from '@antiphon/testing/providers';
import { runCli, readEvents, startStackWith, twoVendorConfig } from './stack-under-test.js';

jest.setTimeout(300_000);

interface Restored {
  readonly epoch: number;
  readonly messages: string;
  readonly log: { readonly position: number };
  readonly loss: { readonly events: number; readonly to: { readonly position: number } };
}

describe('a restore', () => {
  let mock: MockModel;
  let stack: TestStack;
  const folder = mkdtempSync(join(tmpdir(), 'antiphon-e2e-backup-'));
  const backup = join(folder, 'one');

  beforeAll(async () => {
    mock = await startMockModel(({ user }) => ({ text: ['You said: ', user] }));
    stack = await startStackWith(twoVendorConfig(mock.url));
  });
  afterAll(async () => {
    await stack?.stop();
    await mock?.close();
    rmSync(folder, { recursive: true });
  });

  const send = async (client: SocketClient, content: string): Promise<void> => {
    const params = { channel: 'test', account: 'e2e', peer: 'p', agent: 'claude', content };
    const frames = await client.stream('chat.send', params).done();
    expect(frames.at(-1)?.data).toMatchObject({ status: 'completed' });
  };
  const run = async (...args: string[]): Promise<unknown> => {
    const { code, stdout, stderr } = await runCli(stack, [...args, '--json']);
    expect([args, code, stderr]).toEqual([args, 0, '']);
    return JSON.parse(stdout);
  };

  it('reports the lost events, applies none of them, and rejects their cursors', async () => {
    const client = await connectClient(stack.wsUrl);
    await send(client, 'before');
    const { log } = (await run('backup', backup)) as Restored;
    for (let n = 0; n < 3; n++) await send(client, `lost ${n}`);
    const lost = await readEvents(stack);
    const page = (await (await fetch(`${stack.gatewayUrl}/api/v1/events?limit=1`)).json()) as {
      nextCursor: string;
    };
    await run('audit', '--live');
    await client.close();

    const refused = await runCli(stack, ['restore', backup, '--json']);
    expect([refused.code, refused.stdout]).toEqual([
      expect.any(Number),
      expect.stringContaining('a stack runs in'),
    ]);

    let restored: Restored | undefined;
    stack = await stack.restart(async () => {
      restored = (await run('restore', backup)) as Restored;
    });
    expect(restored).toMatchObject({
      epoch: 2,
      messages: 'deleted',
      log,
      loss: { to: { where: 'the database that was replaced' } },
    });
    // A settlement may be appended after the list was read.
    expect(restored?.loss.to.position).toBeGreaterThanOrEqual(lost.length);
    expect(restored?.loss.events).toBe((restored?.loss.to.position ?? 0) - log.position);
    const again = await connectClient(stack.wsUrl);
    const cursor = await fetch(`${stack.gatewayUrl}/api/v1/events?limit=1&cursor=${page.nextCursor}`);
    expect([cursor.status, await cursor.json()]).toMatchObject([409, { code: 'GATEWAY.EPOCH_CHANGED' }]);
    await send(again, 'after');
    const events = await readEvents(stack);
    expect(events.slice(0, log.position)).toEqual(lost.slice(0, log.position));
    expect(JSON.stringify(events)).not.toContain('lost 1');
    expect(await run('audit', '--live')).toMatchObject({ ok: true });
    await again.close();
  });
});
