import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { acrossWorkspaces, createPool } from '@antiphon/database';
import { createTestDatabase, freshStream, newEvent, toStream } from '@antiphon/testing';
import type { DatabaseRole, TestDatabase } from '@antiphon/testing';
import { createPostgresEventStore } from './postgres-event-store.js';
import { createLeaseStore } from './postgres-lease-store.js';

const workspace = 'default';
const FORBIDDEN = { code: '42501' };

let database: TestDatabase;
let admin: pg.Pool;
const pools = new Map<DatabaseRole, pg.Pool>();
const poolOf = (role: DatabaseRole): pg.Pool => pools.get(role) as pg.Pool;

beforeAll(async () => {
  database = await createTestDatabase();
  admin = createPool({ url: database.url, applicationName: 'spec', max: 2 });
  for (const role of ['gateway', 'agent', 'sandbox', 'metering', 'memory', 'archiver'] as const)
    pools.set(role, createPool({ url: database.urlFor(role), applicationName: 'spec', max: 2 }));
}, 60_000);
afterAll(async () => {
  for (const pool of [...pools.values(), admin]) await pool?.end();
  await database?.drop();
}, 60_000);

const append = (role: DatabaseRole, streamId: string, type = 'Noted') =>
  createPostgresEventStore(poolOf(role)).append({
    workspace,
    streams: [{ streamId, expectedVersion: 'any', events: [newEvent({}, { type })] }],
  });

describe('a lease', () => {
  it.each([
    ['agent', 'session/1', true],
    ['agent', 'relay', false],
    ['memory', 'relay', true],
    ['memory', 'log-roots', true],
    ['memory', 'session/1', false],
    ['metering', 'session/1', false],
    ['gateway', 'session/1', false],
    ['sandbox', 'session/1', false],
    ['agent', 'unknown/1', false],
  ] as const)('for %s of the name %s is granted: %s', async (role, name, isGranted) => {
    const acquired = createLeaseStore(poolOf(role)).acquire(workspace, name, `${role}-1`, 1);
    if (isGranted) await expect(acquired).resolves.toMatchObject({ lease: { name } });
    else await expect(acquired).rejects.toMatchObject({ code: 'DATABASE.FORBIDDEN' });
  });

  it('cannot be written past its function, so that no role sets an epoch', async () => {
    for (const pool of pools.values())
      for (const text of [
        `update leases set epoch = 4611686018427387904`,
        `insert into leases values ('default', 'session/2', 'x', 1, now())`,
      ])
        await expect(pool.query(text)).rejects.toMatchObject(FORBIDDEN);
  });
});

describe('the log', () => {
  it('shows a role only the categories that its service reads', async () => {
    for (const [role, category] of [
      ['agent', 'session'],
      ['agent', 'run'],
      ['metering', 'budget'],
      ['memory', 'memory'],
      ['gateway', 'key'],
    ] as const)
      await append(role, freshStream(category));
    const seen = async (role: DatabaseRole) => {
      const text = 'select distinct category from events order by 1';
      const { rows } = await acrossWorkspaces(poolOf(role)).query<{ category: string }>(text);
      return rows.map(({ category }) => category);
    };
    expect(await seen('metering')).toEqual(['budget', 'session']);
    expect(await seen('agent')).toEqual(['budget', 'memory', 'run', 'session']);
    expect(await seen('memory')).toEqual(['budget', 'key', 'memory', 'run', 'session']);
    expect(await seen('gateway')).toEqual([]);
  });

  it('takes facts of tools alone from the sandbox, and shows it no others', async () => {
    const own = freshStream('plugin');
    await append('sandbox', own);
    const foreign = freshStream('session');
    await append('agent', foreign);
    await expect(append('sandbox', foreign)).rejects.toMatchObject({ code: 'LOG.NOT_OWNER' });
    const store = createPostgresEventStore(poolOf('sandbox'));
    expect(await store.readStream(workspace, own)).toHaveLength(1);
    expect(await store.readStream(workspace, foreign)).toEqual([]);
    expect(await store.streamVersion(workspace, foreign)).toBe(0);
    expect(await store.readStream('elsewhere', own)).toEqual([]);
  });
});

describe('a checkpoint and a parked stream', () => {
  it('are written only by the service of the projection', async () => {
    const move = (role: DatabaseRole, name: string) =>
      poolOf(role).query(
        `insert into projection_checkpoints (name, position, epoch, updated_at) values ($1, 0, 1, now())
         on conflict (name) do update set position = 9`,
        [name],
      );
    await move('agent', 'agent-spec');
    await move('agent', 'agent-spec');
    await move('memory', 'memory-spec');
    for (const [role, name] of [
      ['memory', 'agent-spec'],
      ['metering', 'memory-spec'],
      ['agent', 'budget-spec'],
      ['gateway', 'agent-spec'],
    ] as const)
      await expect(move(role, name)).rejects.toMatchObject(FORBIDDEN);
    await admin.query(
      `insert into projection_parked (projection, workspace, stream_id, position, reason, parked_at)
       values ('memory-spec', 'default', 'session-1', 1, 'x', now())`,
    );
    const text = `delete from projection_parked where projection = 'memory-spec'`;
    expect((await acrossWorkspaces(poolOf('agent')).query(text)).rowCount).toBe(0);
    expect((await acrossWorkspaces(poolOf('memory')).query(text)).rowCount).toBe(1);
  });
});

describe('an archive', () => {
  const propose = async (streamId: string, file = 'events-1.jsonl.gz') => {
    const { rows } = await admin.query<{ version: string; hash: Buffer; last: string }>(
      `select h.version, h.hash, (select max(position) from events e where e.stream_id = h.stream_id) as last
       from stream_heads h where stream_id = $1`,
      [streamId],
    );
    const { version = '0', hash, last } = rows[0] ?? {};
    const request = [randomUUID(), file, Buffer.alloc(32), last];
    await poolOf('agent').query(
      'insert into archive_requests (archive_id, file, sha256, cut_position) values ($1, $2, $3, $4)',
      request,
    );
    return poolOf('archiver').query('select antiphon_archive($1, $2, $3, $4, $5, $6, $7, $8, $9)', [
      ...[...request, [workspace], [streamId], [1], [version], [hash]],
    ]);
  };
  const CHECK = { code: '23514' };

  it('is refused for open turns, other categories and a file outside of its folder', async () => {
    await admin.query('delete from projection_checkpoints');
    const [open, ended, workflow] = [freshStream(), freshStream(), freshStream('workflow')];
    await append('agent', open, 'TurnRequested');
    for (const type of ['TurnRequested', 'TurnCompleted']) await append('agent', ended, type);
    await append('agent', workflow);
    await createPostgresEventStore(poolOf('agent')).append({
      workspace,
      streams: [toStream(freshStream(), 0)],
    });
    await expect(propose(open)).rejects.toMatchObject(CHECK);
    await expect(propose(workflow)).rejects.toMatchObject(CHECK);
    for (const file of ['../events.gz', 'a/b', 'a\\b', '..', ''])
      await expect(propose(ended, file)).rejects.toMatchObject(CHECK);
    await propose(ended);
  });

  it('needs a request, which only the agent makes and no role alters', async () => {
    const archive = (id: string, file: string) =>
      poolOf('archiver').query('select antiphon_archive($1, $2, $3, 0, $4, $4, $5, $5, $6)', [
        ...[id, file, Buffer.alloc(32), [], [], []],
      ]);
    await expect(archive(randomUUID(), 'f')).rejects.toThrow('no request for the archive');
    const id = randomUUID();
    const insert = (role: DatabaseRole) =>
      poolOf(role).query(
        `insert into archive_requests (archive_id, file, sha256, cut_position) values ($1, 'f', $2, 0)`,
        [id, Buffer.alloc(32)],
      );
    for (const role of ['gateway', 'sandbox', 'metering', 'memory', 'archiver'] as const)
      await expect(insert(role)).rejects.toMatchObject(FORBIDDEN);
    await insert('agent');
    await expect(archive(id, 'other')).rejects.toThrow('no request for the archive');
    for (const [role, text] of [
      ['agent', `update archive_requests set refusal = null`],
      ['agent', `update archive_requests set sha256 = '\\x01'`],
      ['archiver', `update archive_requests set file = 'x'`],
      ['archiver', `delete from archive_requests`],
      ['archiver', `delete from events`],
    ] as const)
      await expect(poolOf(role).query(text)).rejects.toMatchObject(FORBIDDEN);
    await admin.query('delete from archive_requests');
  });

  it('is refused beyond the newest signed root', async () => {
    const streamId = freshStream();
    await append('agent', streamId);
    await append('agent', freshStream());
    await admin.query(`insert into log_roots values (1, 'root', 1, '\\x00', '{}', now())`);
    await expect(propose(streamId)).rejects.toMatchObject(CHECK);
    await admin.query('delete from log_roots');
  });

  it('is refused to every other role, the agent that writes its file included', async () => {
    for (const role of ['gateway', 'agent', 'sandbox', 'metering', 'memory'] as const)
      await expect(
        poolOf(role).query(
          `select antiphon_archive(gen_random_uuid(), 'f', '', 0, '{}', '{}', '{}', '{}', '{}')`,
        ),
      ).rejects.toMatchObject(FORBIDDEN);
  });
});
