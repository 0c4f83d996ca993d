import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { Connection } from '@temporalio/client';
import { ensureEngines } from '@antiphon/bootstrap/engines/resolve-engine';
import { createProgress } from '@antiphon/bootstrap/progress';
import { cacheFolder, projectRoot } from '@antiphon/bootstrap/project';
import { SERVICES } from '@antiphon/contracts/messaging';
import type { ServiceName } from '@antiphon/contracts/messaging';
import { createTestDatabase, until } from '@antiphon/testing';
import type { TestDatabase } from '@antiphon/testing';
import { SEARCH_ATTRIBUTES, TEMPORAL_NAMESPACE } from '../engines/temporal.js';
import { migrateEngines } from './migrate-engines.js';

const MIGRATIONS = fileURLToPath(new URL('../../../prisma/migrations', import.meta.url));

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
};

/**
 * A server as docker-compose.yml and the local overlay start it: in memory here, and nothing in it
 * yet.
 */
const startBareTemporal = async (): Promise<{ address: string; stop: () => Promise<void> }> => {
  const context = {
    cache: cacheFolder(process.env),
    env: process.env,
    root: projectRoot,
    postgresMajor: null,
  };
  const { temporal } = await ensureEngines(
    ['temporal'],
    context,
    createProgress(() => undefined),
  );
  const port = await freePort();
  const args = ['server', 'start-dev', '--headless', '--ip', '127.0.0.1', '--port', String(port)];
  const child = spawn(join(temporal?.folder ?? '', 'temporal'), [...args, '--log-level', 'error'], {
    stdio: 'ignore',
  });
  const address = `127.0.0.1:${port}`;
  await until(async () => {
    try {
      await (await Connection.connect({ address, connectTimeout: 1_000 })).close();
      return true;
    } catch (error) {
      if (child.exitCode !== null) throw error;
      return false;
    }
  }, 60_000);
  const stop = async (): Promise<void> => {
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  };
  return { address, stop };
};

const newPasswords = (): Record<ServiceName, string> =>
  Object.fromEntries(SERVICES.map((service) => [service, randomBytes(16).toString('hex')])) as Record<
    ServiceName,
    string
  >;

describe('the migration job', () => {
  const name = `antiphon_migrate_${randomBytes(4).toString('hex')}`;
  let neighbour: TestDatabase;
  let admin: pg.Client;
  let url: string;
  beforeAll(async () => {
    neighbour = await createTestDatabase();
    admin = new pg.Client({ connectionString: neighbour.url });
    await admin.connect();
    await admin.query(`create database ${name}`);
    const own = new URL(neighbour.url);
    own.pathname = `/${name}`;
    url = own.href;
  }, 60_000);
  afterAll(async () => {
    await admin.query(`drop database ${name} with (force)`);
    // Roles belong to the whole server: the next spec finds them as this one did.
    for (const service of SERVICES) await admin.query(`alter role antiphon_${service} nologin password null`);
    await admin.end();
    await neighbour.drop();
  }, 60_000);

  const run = async (
    passwords: Record<ServiceName, string> | null,
    temporalAddress: string | null = null,
  ) => {
    const lines: string[] = [];
    const temporal = temporalAddress === null ? null : { address: temporalAddress, tls: false };
    const settings = { databaseUrl: url, passwords, temporal };
    await migrateEngines(settings, { migrationsDir: MIGRATIONS, note: (line) => lines.push(line) });
    return lines;
  };

  const loginAs = async (service: ServiceName, password: string): Promise<string | undefined> => {
    const own = new URL(url);
    own.username = `antiphon_${service}`;
    own.password = password;
    const client = new pg.Client({ connectionString: own.href });
    await client.connect();
    try {
      const { rows } = await client.query<{ name: string }>('select current_user as name');
      return rows[0]?.name;
    } finally {
      await client.end();
    }
  };

  it('creates the schema and one login per service, and changes passwords when it runs again', async () => {
    const [first, second] = [newPasswords(), newPasswords()];
    expect((await run(first))[0]).toMatch(/^database: applied /);
    for (const service of SERVICES)
      expect(await loginAs(service, first[service])).toBe(`antiphon_${service}`);

    expect((await run(second))[0]).toBe('database: up to date');
    for (const service of SERVICES)
      expect(await loginAs(service, second[service])).toBe(`antiphon_${service}`);
    // A server that trusts loopback would take any password; then there is nothing to see here.
    const auth = await admin.query<{ auth_method: string }>(
      "select auth_method from pg_hba_file_rules where type = 'host' limit 1",
    );
    expect(auth.rows[0]?.auth_method).toBe('scram-sha-256');
    await expect(loginAs('agent', first.agent)).rejects.toThrow(/password authentication failed/);
  }, 60_000);

  it('grants no service access to another one’s tables', async () => {
    const passwords = newPasswords();
    await run(passwords);
    const own = new URL(url);
    own.username = 'antiphon_sandbox';
    own.password = passwords.sandbox;
    const client = new pg.Client({ connectionString: own.href });
    await client.connect();
    for (const statement of [
      'select * from budget_balances',
      'select * from provider_credentials',
      `update events set type = 'Noted'`,
      'delete from stream_heads',
    ])
      await expect(client.query(statement)).rejects.toThrow(/permission denied/);
    await client.end();
  }, 60_000);

  it('creates the namespace and search attributes in Temporal, and is idempotent', async () => {
    const temporal = await startBareTemporal();
    try {
      await run(null, temporal.address);
      expect((await run(null, temporal.address)).at(-1)).toMatch(/^Temporal: the namespace/);
      const connection = await Connection.connect({ address: temporal.address });
      const { customAttributes } = await connection.operatorService.listSearchAttributes({
        namespace: TEMPORAL_NAMESPACE,
      });
      await connection.close();
      expect(Object.keys(customAttributes)).toEqual(expect.arrayContaining([...SEARCH_ATTRIBUTES]));
    } finally {
      await temporal.stop();
    }
  }, 120_000);

  it('reports an unreachable database', async () => {
    const nowhere = new URL(url);
    nowhere.port = '1';
    const settings = { databaseUrl: nowhere.href, passwords: null, temporal: null };
    await expect(
      migrateEngines(settings, { migrationsDir: MIGRATIONS, note: () => undefined }),
    ).rejects.toMatchObject({ code: 'LOG.UNAVAILABLE' });
  });
});
