import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { healthContract } from '@antiphon/contracts/messaging';
import { TOOL_CANCEL_SUBJECT, callTool, findCall, listPlugins, listTools } from '@antiphon/contracts/sandbox';
import { connectNats, createRequestClient } from '@antiphon/messaging';
import type { NatsLink, RequestClient } from '@antiphon/messaging';
import { createLogger, silentLogger } from '@antiphon/observability';
import { startService } from '@antiphon/service-host';
import type { RunningService } from '@antiphon/service-host';
import { createTestDatabase, startNatsServer, until } from '@antiphon/testing';
import type { TestDatabase, TestNatsServer } from '@antiphon/testing';
import { SandboxModule } from './sandbox.module.js';
import { MODULES } from './testing/modules.fixture.spec.js';
import { bundledPlugins } from './testing/sandbox.fixture.spec.js';
import type { LogEntry } from './testing/sandbox.fixture.spec.js';

jest.setTimeout(60_000);

const CONFIG = `
[[plugins]]
name = "loop"
path = "loop.wasm"
timeout_ms = 60000

[[plugins]]
name = "script"
path = "script.wasm"

[[plugins]]
name = "gone"
path = "gone.wasm"
`;

describe('the sandbox service', () => {
  let folder: string;
  let database: TestDatabase;
  let server: TestNatsServer;
  let running: RunningService;
  let other: RunningService | undefined;
  let link: NatsLink;
  let client: RequestClient;
  const log: LogEntry[] = [];

  const startIn = async (home: string): Promise<RunningService> => {
    const env = {
      ANTIPHON_SERVICE_DATABASE_URL: database.urlFor('sandbox'),
      ANTIPHON_SERVICE_NATS_URL: server.url,
      ANTIPHON_HOME: home,
      ANTIPHON_CONFIG: join(home, 'antiphon.toml'),
      HOME: home,
    };
    const sink = { write: (line: string) => void log.push(JSON.parse(line) as LogEntry) };
    const logger = createLogger({ service: 'sandbox', sink });
    const module = SandboxModule.withBundled(await bundledPlugins());
    return startService({ service: 'sandbox', module, env, cwd: home, logger });
  };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'antiphon-sandbox-'));
    await writeFile(join(folder, 'antiphon.toml'), CONFIG);
    await writeFile(join(folder, 'loop.wasm'), MODULES['loop'] ?? '');
    await writeFile(join(folder, 'script.wasm'), MODULES['not-wasm'] ?? '');
    [database, server] = await Promise.all([createTestDatabase(), startNatsServer()]);
    running = await startIn(folder);
    link = await connectNats({ url: server.url, service: 'agent', logger: silentLogger });
    client = createRequestClient(link);
  });

  afterAll(async () => {
    await link.drain();
    await Promise.all([running.stop(), other?.stop()]);
    await Promise.all([database.drop(), server.remove(), rm(folder, { recursive: true })]);
  });

  const workspace = 'default';
  const request = (name: string, more = {}) => ({
    ...{ workspace, sessionId: randomUUID(), callId: randomUUID(), epoch: 1, idempotencyKey: 'k' },
    ...{ name, input: { expression: '6 * 7' } },
    ...more,
  });

  it('starts with missing and invalid plug-ins and lists them', async () => {
    const { plugins } = await client.request(listPlugins, { workspace });
    expect(plugins.map(({ name, status }) => [name, status])).toEqual([
      ['echo', 'loaded'],
      ['calculator', 'loaded'],
      ['http-get', 'loaded'],
      ['loop', 'loaded'],
      ['script', 'rejected'],
      ['gone', 'missing'],
    ]);
    expect(log).toContainEqual(
      expect.objectContaining({ level: 'warn', plugin: 'gone', message: 'plugin missing' }),
    );
  });

  it('lists the callable tools', async () => {
    const { tools } = await client.request(listTools, { workspace });
    expect(tools.map(({ name }) => name)).toEqual(['echo', 'calculator', 'http-get', 'loop']);
  });

  it('runs a tool', async () => {
    const reply = await client.request(callTool, request('calculator'));
    expect(reply).toMatchObject({ outcome: 'completed', content: '42', isError: false });
  });

  it('refuses a replaced driver', async () => {
    const sessionId = randomUUID();
    await client.request(callTool, request('echo', { sessionId, epoch: 7 }));
    await expect(client.request(callTool, request('echo', { sessionId, epoch: 6 }))).rejects.toMatchObject({
      kind: 'conflict',
      code: 'SANDBOX.FENCED',
    });
  });

  it('returns the largest result of a tool', async () => {
    const reply = await client.request(callTool, request('echo', { input: 'x'.repeat(1_000_000) }));
    expect(reply).toMatchObject({ outcome: 'completed', isError: false });
  });

  it('ends a call on a cancel message', async () => {
    const call = request('loop');
    const reply = client.request(callTool, call);
    const { sessionId, callId, epoch } = call;
    const cancel = JSON.stringify({ workspace, sessionId, callId, epoch });
    let ended = false;
    void reply.finally(() => (ended = true));
    await until(() => {
      link.connection.publish(TOOL_CANCEL_SUBJECT, cancel);
      return ended;
    });
    expect(await reply).toMatchObject({ outcome: 'failed', code: 'TOOL.CANCELLED' });
  });

  it('finds a call while another process does not know it', async () => {
    other = await startIn(folder);
    const call = request('loop');
    const { sessionId, callId, epoch } = call;
    const about = { workspace, sessionId, callId };
    const find = () => client.request(findCall, about);
    await expect(find()).rejects.toMatchObject({ code: 'MESSAGING.TIMEOUT' });
    const reply = client.request(callTool, call);
    await until(async () => (await find().catch(() => null))?.state === 'running');
    link.connection.publish(TOOL_CANCEL_SUBJECT, JSON.stringify({ ...about, epoch }));
    const ended = await reply;
    expect(ended).toMatchObject({ outcome: 'failed', code: 'TOOL.CANCELLED' });
    expect(await find()).toEqual({ state: 'ended', reply: ended });
  });

  it('reports cells, layers and plug-ins as health', async () => {
    const report = await client.request(healthContract('sandbox'), {});
    expect(report.checks).toContainEqual(expect.objectContaining({ name: 'cells', healthy: true }));
    expect(report.facts).toMatchObject({
      layers: expect.arrayContaining(['process', 'files']),
      plugins: expect.arrayContaining([{ name: 'gone', status: 'missing' }]),
    });
  });
});
