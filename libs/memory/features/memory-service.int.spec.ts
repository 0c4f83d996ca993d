import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { assembleContext, queryFacts } from '@antiphon/contracts/memory';
import { healthContract } from '@antiphon/contracts/messaging';
import { MemoryModule } from '@antiphon/memory-features';
import { connectNats, createRequestClient } from '@antiphon/messaging';
import type { NatsLink, RequestClient } from '@antiphon/messaging';
import { silentLogger } from '@antiphon/observability';
import { startService } from '@antiphon/service-host';
import type { RunningService } from '@antiphon/service-host';
import { startNatsServer, until } from '@antiphon/testing';
import type { TestNatsServer } from '@antiphon/testing';
import { WORKSPACE, openMemory } from './memory-fixtures.spec.js';
import type { MemoryFixture } from './memory-fixtures.spec.js';

const CONFIG = `[[agents]]\nid = "main"\nsoul_path = "SOUL.md"\n`;

let memory: MemoryFixture;
let server: TestNatsServer;
let folder: string;
let service: RunningService;
let agent: NatsLink;
let requests: RequestClient;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'antiphon-memory-'));
  writeFileSync(join(folder, 'antiphon.toml'), CONFIG);
  writeFileSync(join(folder, 'SOUL.md'), 'You are kind.');
  [memory, server] = await Promise.all([openMemory(), startNatsServer()]);
  const env = {
    ANTIPHON_SERVICE_DATABASE_URL: memory.memoryUrl,
    ANTIPHON_SERVICE_NATS_URL: server.url,
    ANTIPHON_HOME: folder,
  };
  service = await startService({
    service: 'memory',
    module: MemoryModule,
    env,
    cwd: folder,
    logger: silentLogger,
  });
  agent = await connectNats({ url: server.url, service: 'agent', logger: silentLogger });
  requests = createRequestClient(agent);
}, 30_000);

afterAll(async () => {
  await agent.drain();
  await service.stop();
  await server.remove();
  await memory.close();
  rmSync(folder, { recursive: true, force: true });
});

const begin = () => memory.begin(`main:cli:me:${randomUUID()}`);

describe('the memory service', () => {
  it('assembles a context over NATS', async () => {
    const talk = await begin();
    const version = await memory.say(talk, 'my name is Ada');
    const reply = await requests.request(assembleContext, {
      workspace: WORKSPACE,
      ...talk,
      agentId: 'main',
      atLeast: version,
      query: 'who am I?',
      budgetTokens: 1_000,
    });
    expect(reply).toMatchObject({
      version,
      soul: { text: 'You are kind.' },
      facts: [{ subject: 'user', predicate: 'name', object: 'Ada' }],
    });
  });

  it('projects the log to its rows', async () => {
    const talk = await begin();
    await memory.say(talk, 'my name is Ada');
    const projected = async () =>
      (await memory.rows()).sessions.some(
        ({ session_id: id, version }) => id === talk.sessionId && version === '3',
      );
    await until(projected);
    const { checks } = await requests.request(healthContract('memory'), {});
    expect(checks).toContainEqual(expect.objectContaining({ name: 'projection', healthy: true }));
  });

  it('replies with an error for an unknown session', () =>
    expect(
      requests.request(queryFacts, { workspace: WORKSPACE, sessionId: randomUUID() }),
    ).rejects.toMatchObject({ kind: 'not_found', code: 'MEMORY.SESSION_UNKNOWN' }));
});
