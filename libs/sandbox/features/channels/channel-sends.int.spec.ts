import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { ChannelConfig } from '@antiphon/config';
import { createPool, inWorkspace } from '@antiphon/database';
import { silentLogger } from '@antiphon/observability';
import { createTestDatabase } from '@antiphon/testing';
import type { TestDatabase } from '@antiphon/testing';
import { bundledPlugins, startSandbox } from '../testing/sandbox.fixture.spec.js';
import type { TestSandbox } from '../testing/sandbox.fixture.spec.js';
import { ChannelSends } from './channel-sends.js';
import { ChannelHandlers } from './channels.handler.js';

jest.setTimeout(60_000);

const workspace = 'default';
const WORKSPACES = ['default', 'other'];
const seen: string[] = [];
const platform = createServer((request, response) => {
  seen.push(request.url ?? '');
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end('{"ok":true,"token":"canary-token"}');
});

let database: TestDatabase;
let pool: ReturnType<typeof createPool>;
let box: TestSandbox;
let handlers: ChannelHandlers;

beforeAll(async () => {
  database = await createTestDatabase();
  pool = createPool({ url: database.urlFor('sandbox'), applicationName: 'spec', max: 3 });
  const channels = [{ plugin: 'mock' }] as unknown as ChannelConfig[];
  box = await startSandbox([], {}, { bundledDirectory: await bundledPlugins(), channels });
  handlers = new ChannelHandlers(box.sandbox, new ChannelSends(pool, silentLogger));
  await new Promise<void>((resolve) => platform.listen(0, '127.0.0.1', resolve));
});
afterAll(async () => {
  await box?.close();
  await pool?.end();
  await database?.drop();
  platform.close();
});

const send = (key: string) => {
  const { port } = platform.address() as AddressInfo;
  return handlers.send({
    ...{ plugin: 'mock', baseUrl: `http://127.0.0.1:${port}`, token: 'canary-token', replySecret: null },
    request: { method: 'POST', url: `/${key}`, headers: {}, body: '{}' },
    ...{ idempotencyKey: key, attempt: { workspace, key } },
  });
};

describe('an attempt to send a part of a reply', () => {
  it('that ended is told again to a process that asks, without the token', async () => {
    const sent = await send('ended');
    expect(sent).toMatchObject({ outcome: 'answered', status: 200 });
    expect(await handlers.settle({ workspace, key: 'ended' })).toEqual(sent);
    expect(JSON.stringify(sent)).not.toContain('canary');
  });

  it('that has not begun never leaves after it is settled', async () => {
    expect(await handlers.settle({ workspace, key: 'waiting' })).toMatchObject({ outcome: 'unreached' });
    expect(await send('waiting')).toMatchObject({ outcome: 'unreached' });
    expect(seen).not.toContain('/waiting');
  });

  it('leaves once, although its request is delivered twice', async () => {
    const ends = await Promise.all([send('twice'), send('twice')]);
    expect(ends.map(({ outcome }) => outcome).sort()).toEqual(['answered', 'unreached']);
    expect(seen.filter((path) => path === '/twice')).toHaveLength(1);
  });

  it('whose process ended before its answer has an unknown outcome', async () => {
    await new ChannelSends(pool, silentLogger).claim(workspace, 'killed');
    expect(await handlers.settle({ workspace, key: 'killed' })).toMatchObject({ outcome: 'unknown' });
  });

  it('is one of its workspace alone, and is forgotten after thirty days', async () => {
    const counts = await Promise.all(
      WORKSPACES.map(async (name) => (await inWorkspace(pool, name).query('table channel_sends')).rowCount),
    );
    expect([counts[0]! > 0, counts[1]]).toEqual([true, 0]);
    await inWorkspace(pool, workspace).query(
      `update channel_sends set claimed_at = now() - interval '31 days' where send_key = 'ended'`,
    );
    await new ChannelSends(pool, silentLogger).claim(workspace, 'next');
    expect(await handlers.settle({ workspace, key: 'ended' })).toMatchObject({ outcome: 'unreached' });
  });
});
