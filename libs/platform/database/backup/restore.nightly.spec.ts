import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createConnection, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import pg from 'pg';
import { RESTORE_FAILPOINTS, armFailpoints, rejected } from '@antiphon/kernel';
import { silentLogger } from '@antiphon/observability';
import { createTestDatabase, until } from '@antiphon/testing';
import type { TestDatabase } from '@antiphon/testing';
import { migrate } from '../migrate.js';
import { createPool } from '../pool.js';
import { acrossWorkspaces } from '../workspace.js';
import { backupDatabase } from './backup-database.js';
import { holdDatabase } from './hold-database.js';
import { listRestores, restoreDatabase, resumeRestore, undoRestore } from './restore-database.js';

const MIGRATIONS = fileURLToPath(new URL('../../../../prisma/migrations', import.meta.url));
const FIXTURE = fileURLToPath(new URL('fixtures/restore.mjs', import.meta.url));
const EPOCH_AFTER = 2;

jest.setTimeout(120_000);

let database: TestDatabase;
let admin: pg.Client;
let folder: string;

const insertEvents = (from: number, to: number): Promise<unknown> =>
  admin.query(`insert into events
    select n, 'default', 'session', 'session-' || n, 1, gen_random_uuid(), 'Asked', 1,
      jsonb_build_object('n', n), '{}', now(), sha256(n::text::bytea) from generate_series(${from}, ${to}) n`);

// The log has 30 events, a backup of them exists, and 20 more events came after it.
beforeEach(async () => {
  database = await createTestDatabase();
  admin = new pg.Client({ connectionString: database.url });
  await admin.connect();
  folder = await mkdtemp(join(tmpdir(), 'antiphon-restore-'));
  await insertEvents(1, 30);
  const pool = createPool({ url: database.url, applicationName: 'spec' });
  await backupDatabase(pool, folder, () => Promise.resolve({})).finally(() => pool.end());
  await insertEvents(31, 50);
});
afterEach(async () => {
  armFailpoints(null);
  await admin.end();
  await database.drop();
  await rm(folder, { recursive: true });
});

const events = async (schema = 'public'): Promise<number> =>
  (await admin.query(`select from ${schema}.events`)).rowCount ?? 0;
const oldSchemas = async (): Promise<string[]> => {
  const { rows } = await admin.query<{ name: string }>(
    `select nspname as name from pg_namespace where nspname like 'antiphon_before_restore_%' order by 1`,
  );
  return rows.map(({ name }) => name);
};
/** Waits until the server has noticed the end of a killed process. */
const restoreIsGone = (): Promise<void> =>
  until(async () => {
    const { rowCount } = await admin.query(
      `select from pg_stat_activity where datname = current_database() and application_name in ('antiphon-restore', 'antiphon-migrate')`,
    );
    return rowCount === 0;
  });
/** Runs a command in its own process, which is killed at the point. Returns its signal. */
const run = async (command: string, point: string): Promise<string | null> => {
  const args = [FIXTURE, command, database.url, folder, point];
  const ended = await promisify(execFile)(process.execPath, args, {
    env: { PATH: process.env['PATH'] },
  }).then(
    () => null,
    (error: { signal: string | null; stderr: string }) => {
      if (error.signal === null) throw new Error(error.stderr);
      return error.signal;
    },
  );
  await restoreIsGone();
  return ended;
};
const AGENT = { applicationName: 'antiphon-agent', logger: silentLogger };
const start = () => holdDatabase({ ...AGENT, url: database.urlFor('agent'), withinMs: 0 });

/** Forwards connections to PostgreSQL until it is cut. */
const startProxy = async (host: string, target: number) => {
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = createConnection({ host, port: target });
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(one);
      one.on('error', () => undefined).on('close', () => other.destroy());
      one.pipe(other);
    }
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    cut: async (): Promise<void> => {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
    mend: async (): Promise<void> => void (await once(server.listen(port, '127.0.0.1'), 'listening')),
  };
};
const options = {
  migrationsDir: MIGRATIONS,
  finish: (): Promise<null> => Promise.resolve(null),
};

const restore = (more: Partial<Parameters<typeof restoreDatabase>[0]> = {}) =>
  restoreDatabase({ ...options, url: database.url, folder, ...more });
/** Resumes a restore in this process, and begins the next epoch. */
const resume = () =>
  resumeRestore({
    ...{ ...options, url: database.url },
    finish: async (client) => {
      await client.query('update log_head set epoch = epoch + 1');
      return null;
    },
  });

const BEFORE_MARKER: readonly string[] = ['restore.lock.taken'];
const AFTER_MARKER: readonly string[] = ['restore.marker.removed'];
const POINTS = RESTORE_FAILPOINTS.filter((name) => name !== 'restore.undo.begun');
const INTERRUPTED = POINTS.filter((name) => ![...BEFORE_MARKER, ...AFTER_MARKER].includes(name));

describe('a restore that is killed', () => {
  it.each(INTERRUPTED)('at %s: no service starts, and a resume completes it', async (point) => {
    expect(await run('restore', point)).toBe('SIGKILL');
    await expect(start()).rejects.toMatchObject({
      code: 'DATABASE.RESTORE_UNFINISHED',
      message: expect.stringMatching(/restore --resume.*restore --undo/),
    });
    await expect(migrate(database.url, MIGRATIONS)).rejects.toMatchObject({
      code: 'DATABASE.RESTORE_UNFINISHED',
    });
    // The obvious reaction, a second restore, drops nothing.
    await expect(restore()).rejects.toMatchObject({ code: 'DATABASE.RESTORE_UNFINISHED' });
    const [old = ''] = await oldSchemas();
    expect(await events(old)).toBe(50);

    await resume();
    expect(await events()).toBe(30);
    const { rows } = await admin.query('select epoch::integer from log_head');
    expect(rows).toEqual([{ epoch: EPOCH_AFTER }]);
    expect(await oldSchemas()).toEqual([old]);
    expect(await events(old)).toBe(50);
    await (await start()).release();
  });

  it.each(INTERRUPTED)('at %s: an undo brings every event back', async (point) => {
    await run('restore', point);
    expect(await run('undo', 'restore.undo.begun')).toBe('SIGKILL');
    await expect(start()).rejects.toMatchObject({ code: 'DATABASE.RESTORE_UNFINISHED' });
    await undoRestore(database.url);
    expect([await events(), await oldSchemas()]).toEqual([50, []]);
    await (await start()).release();
    await restore();
    expect(await events()).toBe(30);
  });

  it('at a resume is resumed again', async () => {
    await run('restore', 'restore.schema.replaced');
    for (const point of INTERRUPTED.slice(1)) expect(await run('resume', point)).toBe('SIGKILL');
    await resume();
    const [old = ''] = await oldSchemas();
    expect([await events(), await events(old)]).toEqual([30, 50]);
  });

  it('before its first change leaves the database as it was, and after its last change is complete', async () => {
    expect(await run('restore', 'restore.lock.taken')).toBe('SIGKILL');
    expect([await events(), await oldSchemas()]).toEqual([50, []]);
    await (await start()).release();
    expect(await run('restore', 'restore.marker.removed')).toBe('SIGKILL');
    expect([await events(), (await oldSchemas()).length]).toEqual([30, 1]);
    await (await start()).release();
    await expect(resumeRestore({ ...options, url: database.url })).rejects.toMatchObject({
      code: 'BACKUP.NOTHING_UNFINISHED',
    });
  });
});

describe('a restore', () => {
  it('keeps what it replaces under a name of its own, which no service may read', async () => {
    await restore();
    await restore();
    const schemas = await oldSchemas();
    expect(await Promise.all(schemas.map((schema) => events(schema)))).toEqual([50, 30]);
    const agent = new pg.Client({ connectionString: database.urlFor('agent') });
    await agent.connect();
    await expect(agent.query(`select from ${schemas[0]}.events`)).rejects.toMatchObject({ code: '42501' });
    await agent.end();
    const records = await listRestores(database.url);
    expect(records.map(({ phase, oldSchema }) => [phase, oldSchema])).toEqual(
      schemas.map((schema) => ['finished', schema]).reverse(),
    );
  });

  it('is refused under a running service, idle or not', async () => {
    const hold = await start();
    await expect(restore()).rejects.toMatchObject({
      code: 'BACKUP.DATABASE_USED',
      message: expect.stringContaining('antiphon-agent'),
    });
    await hold.release();
    await until(() =>
      restore().then(
        () => true,
        () => false,
      ),
    );
  });

  it('lets a service that starts during it wait, and opens no connection of a pool', async () => {
    const reached = Promise.withResolvers<void>();
    const proceed = Promise.withResolvers<void>();
    armFailpoints((name) => {
      if (name !== 'restore.schema.migrated') return Promise.resolve();
      reached.resolve();
      return proceed.promise;
    });
    const restoring = restore();
    await reached.promise;
    await expect(start()).rejects.toMatchObject({ code: 'DATABASE.RESTORE_RUNS' });
    const url = database.urlFor('agent');
    const pool = createPool({ url, applicationName: 'antiphon-agent', refuseDuringRestore: true });
    await expect(pool.query('select from events')).rejects.toMatchObject({ code: 'DATABASE.RESTORE_RUNS' });
    const waiting = holdDatabase({ ...AGENT, url });
    proceed.resolve();
    await restoring;
    await (await waiting).release();
    expect((await acrossWorkspaces(pool).query('select from events')).rowCount).toBe(30);
    await pool.end();
  });

  it('ends a service that was cut off from the database during it', async () => {
    const { hostname, port } = new URL(database.url);
    const proxy = await startProxy(hostname, Number(port));
    const url = new URL(database.urlFor('agent'));
    url.host = `127.0.0.1:${proxy.port}`;
    const hold = await holdDatabase({ ...AGENT, url: url.href });
    await proxy.cut();
    await until(() =>
      restore().then(
        () => true,
        () => false,
      ),
    );
    await proxy.mend();
    expect(await hold.lost).toMatchObject({ code: 'DATABASE.RESTORED' });
    await hold.release();
    await proxy.cut();
  });

  it('whose step fails brings the data back, also on a full disk', async () => {
    const finish = async (client: pg.ClientBase): Promise<null> => {
      await client.query(
        `do $$ begin raise exception 'could not extend file' using errcode = '53100'; end $$`,
      );
      return null;
    };
    await expect(restore({ finish })).rejects.toMatchObject({ code: 'LOG.UNAVAILABLE' });
    expect([await events(), await oldSchemas()]).toEqual([50, []]);
    await (await start()).release();
  });

  it('that cannot be undone names both ways out, and loses nothing', async () => {
    armFailpoints((name) =>
      name === 'restore.undo.begun'
        ? Promise.reject(new Error('No space left on device'))
        : Promise.resolve(),
    );
    const finish = () => Promise.reject(rejected('SPEC.FAILED', 'spec'));
    await expect(restore({ finish })).rejects.toMatchObject({
      code: 'BACKUP.UNDO_FAILED',
      message: expect.stringMatching(/--undo.*--resume/),
    });
    armFailpoints(null);
    await expect(start()).rejects.toMatchObject({ code: 'DATABASE.RESTORE_UNFINISHED' });
    await undoRestore(database.url);
    expect(await events()).toBe(50);
  });

  it('stays unfinished until the data of other engines is deleted', async () => {
    const deleteDerived = () => Promise.reject(new Error('NATS cannot be reached'));
    await expect(restore({ deleteDerived })).rejects.toMatchObject({
      code: 'BACKUP.NOT_FINISHED',
      message: expect.stringContaining('NATS cannot be reached'),
    });
    await expect(start()).rejects.toMatchObject({ code: 'DATABASE.RESTORE_UNFINISHED' });
    await resumeRestore({ ...options, url: database.url });
    await (await start()).release();
  });
});
