import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { sessionStream } from '@antiphon/contracts/agent';
import { CITE_SQL, PATH_SQL, SWEEP_SQL } from '@antiphon/database';
import type { StreamAppend } from '@antiphon/event-store';
import { FILE_FAILPOINTS, armFailpoints, conflict, rejected } from '@antiphon/kernel';
import { createTestDatabase } from '@antiphon/testing';
import type { TestDatabase } from '@antiphon/testing';
import {
  WORKSPACE,
  createAgentWorld,
  newAddress,
  submitTo,
  testConfig,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { says } from '@antiphon/agent-features/testing/test-model';

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

describe('File trees', () => {
  let database: TestDatabase;
  let world: AgentWorld;
  let agent: TestProcess;
  beforeAll(async () => {
    database = await createTestDatabase();
    world = await createAgentWorld(database, process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
    agent = world.process({ config: testConfig() });
    world.model.reply = () => Promise.resolve(says('ok'));
  }, 60_000);
  afterAll(() => world.close(), 30_000);

  const write = async (process: TestProcess, path: string, text: string, session?: string) => {
    const { files, workspaceFiles } = process.runtime.services;
    const treeId = await workspaceFiles.treeIdOf(WORKSPACE, session);
    const stored = await files.putBytes(WORKSPACE, bytesOf(text));
    const request = { workspace: WORKSPACE, treeId, cause: { actor: 'key/k1' } };
    return workspaceFiles.change(request, () => [{ op: 'write', path, ...stored }]);
  };
  const read = async (process: TestProcess, path: string, session?: string, at?: number): Promise<string> => {
    const { files, workspaceFiles } = process.runtime.services;
    const treeId = await workspaceFiles.treeIdOf(WORKSPACE, session);
    const { entry } = await workspaceFiles.open(WORKSPACE, treeId, path, at);
    return new TextDecoder().decode(await files.readBytes(WORKSPACE, entry.digest));
  };

  const attach = async (path: string, stored: { digest: string; size: number }): Promise<void> => {
    const { sessionId } = await submitTo(agent, { address: newAddress('main') }, 'hello');
    await world.ended(sessionId);
    const data = { path, ...stored, actor: 'key/k1', at: new Date().toISOString() };
    const event = { eventId: randomUUID(), type: 'ChatFileAttached', schemaVersion: 1, data };
    const metadata = { correlationId: 'spec', service: 'agent' };
    const events = [{ ...event, metadata }];
    const streams = [{ streamId: sessionStream(sessionId), expectedVersion: 'any' as const, events }];
    await world.store.append({ workspace: WORKSPACE, streams });
  };

  // @shows chats-C9
  it('show each version, on any process', async () => {
    const first = await write(agent, 'v.txt', 'one');
    await write(agent, 'v.txt', 'two');
    const other = world.process({ config: testConfig() });
    expect(await read(other, 'v.txt')).toBe('two');
    expect(await read(other, 'v.txt', undefined, first.version)).toBe('one');
    await expect(read(other, 'v.txt', undefined, 9_999)).rejects.toMatchObject({
      code: 'FILE.NO_SUCH_VERSION',
    });
  });

  it('of a fork have the files as of the fork point, and do not change the origin', async () => {
    await write(agent, 'f.txt', 'before');
    const { sessionId } = await submitTo(agent, { address: newAddress('main') }, 'hello');
    await world.ended(sessionId);
    await write(agent, 'f.txt', 'after');
    const forked = await agent.runtime.forkSession({ workspace: WORKSPACE, sessionId, caller: 'key/k1' });
    expect(await read(agent, 'f.txt', forked.sessionId)).toBe('before');
    await write(agent, 'f.txt', 'of the fork', forked.sessionId);
    const other = world.process({ config: testConfig() });
    expect(await read(other, 'f.txt', forked.sessionId)).toBe('of the fork');
    expect(await read(other, 'f.txt')).toBe('after');
  });

  // @shows chats-C9
  it.each(FILE_FAILPOINTS)('hold the old or the new text after a failure at %s', async (point) => {
    await write(agent, 'p.txt', 'old');
    armFailpoints((name) =>
      name === point ? Promise.reject(rejected('TEST.KILLED', name)) : Promise.resolve(),
    );
    await expect(write(agent, 'p.txt', `new of ${point}`)).rejects.toMatchObject({ code: 'TEST.KILLED' });
    armFailpoints(null);
    const other = world.process({ config: testConfig() });
    const text = point === 'agent.file.recorded' ? `new of ${point}` : 'old';
    expect([await read(agent, 'p.txt'), await read(other, 'p.txt')]).toEqual([text, text]);
  });

  it('are decided again after a conflict, and stay as they are where a joint append writes nothing', async () => {
    await write(agent, 'j.txt', 'old');
    const { files, workspaceFiles } = agent.runtime.services;
    const treeId = await workspaceFiles.treeIdOf(WORKSPACE);
    const { stored } = await files.stageBytes(WORKSPACE, bytesOf('joint'));
    const versions: number[] = [];
    const request = {
      ...{ workspace: WORKSPACE, treeId, cause: { actor: 'agent/main', callId: randomUUID() } },
      recorder: {
        fence: () => ({ lease: 'unused', epoch: 1 }),
        append: async ({ expectedVersion, streamId }: StreamAppend) => {
          versions.push(Number(expectedVersion));
          if (versions.length > 1) return false;
          await write(world.process({ config: testConfig() }), 'k.txt', 'between');
          throw conflict('LOG.VERSION_CONFLICT', 'another change', { data: { streamId } });
        },
      },
    };
    const { version } = await workspaceFiles.change(request, () => [
      { op: 'write', path: 'j.txt', ...stored },
    ]);
    expect(versions).toEqual([version - 1, version]);
    expect([await read(agent, 'j.txt'), await read(agent, 'k.txt')]).toEqual(['old', 'between']);
  });

  it('refuse a decision that names more than events where the caller records them', async () => {
    const { files, workspaceFiles } = agent.runtime.services;
    const treeId = await workspaceFiles.treeIdOf(WORKSPACE);
    const stored = await files.putBytes(WORKSPACE, bytesOf('never'));
    const request = {
      ...{ workspace: WORKSPACE, treeId, cause: { actor: 'key/k1' } },
      idempotency: { scope: 'key/k1/file.write', key: randomUUID(), digest: '0'.repeat(64) },
      recorder: { append: () => Promise.resolve(true), fence: () => ({ lease: 'unused', epoch: 1 }) },
    };
    await expect(
      workspaceFiles.change(request, () => [{ op: 'write', path: 'never.txt', ...stored }]),
    ).rejects.toMatchObject({ code: 'FILE.DECISION_NOT_RECORDED' });
  });

  it('repeat no change for the same call', async () => {
    const { files, workspaceFiles } = agent.runtime.services;
    const treeId = await workspaceFiles.treeIdOf(WORKSPACE);
    const stored = await files.putBytes(WORKSPACE, bytesOf('once'));
    const request = { workspace: WORKSPACE, treeId, cause: { actor: 'agent/main', callId: 'call-1' } };
    const change = () =>
      workspaceFiles.change(request, () => [{ op: 'write', path: 'once.txt', ...stored, expect: null }]);
    const first = await change();
    expect(await change()).toEqual(first);
  });

  it('restore a version, and take further changes after it', async () => {
    const { workspaceFiles } = agent.runtime.services;
    const first = await write(agent, 'r.txt', 'one');
    await write(agent, 'r.txt', 'two');
    // No cached fold has the version, so that the decision reads the log in its turn.
    for (const process of [agent, world.process({ config: testConfig() })]) {
      const treeId = await workspaceFiles.treeIdOf(WORKSPACE);
      const request = { workspace: WORKSPACE, treeId, cause: { actor: 'key/k1' } };
      await process.runtime.services.workspaceFiles.changeByRequest(request, [
        { op: 'restore', path: 'r.txt', version: first.version },
      ]);
      expect(await read(process, 'r.txt')).toBe('one');
      await write(process, 'r.txt', 'three');
    }
    expect(await read(agent, 'r.txt')).toBe('three');
  }, 5_000);

  it('lose bytes that no fact cites, after a day, and no others', async () => {
    const { blobs, files } = agent.runtime.services;
    await write(agent, 'kept.txt', 'cited');
    const kept = await files.putBytes(WORKSPACE, bytesOf('cited'));
    const lost = await files.putBytes(WORKSPACE, bytesOf('cited by none'));
    const attached = await files.putBytes(WORKSPACE, bytesOf('cited by an attachment alone'));
    await attach('kept.txt', attached);
    const pool = new pg.Pool({ connectionString: database.url, max: 1 });
    await pool.query(`update file_blobs set written_at = written_at - interval '2 days'`);
    await pool.end();
    await blobs.sweep(new Date(Date.now() - 24 * 3_600_000).toISOString());
    const sizes = await blobs.sizes(WORKSPACE, [kept.digest, lost.digest, attached.digest]);
    expect([...sizes.keys()].sort()).toEqual([kept.digest, attached.digest].sort());
  });

  it('find the facts that cite bytes by an index', async () => {
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    // The planner prefers a scan while the tables are small.
    await client.query('set enable_seqscan = off');
    const values = [CITE_SQL, SWEEP_SQL].map((sql) => sql.replaceAll('$1', 'now()').replaceAll('$2', '1000'));
    const plans = await Promise.all(
      values.map(async (sql) => JSON.stringify((await client.query(`explain ${sql}`)).rows)),
    );
    const pathSql = PATH_SQL.replaceAll('$1', `'default'`).replaceAll('$2', `'a.txt'`);
    const pathPlan = JSON.stringify((await client.query(`explain ${pathSql}`)).rows);
    await client.end();
    for (const index of ['events_file_path_idx', 'events_file_moved_idx']) expect(pathPlan).toContain(index);
    for (const plan of plans) {
      expect(plan).toContain('events_file_digest_idx');
      expect(plan).toContain('events_attached_digest_idx');
      expect(plan).not.toContain('Seq Scan on events');
    }
  });
});
