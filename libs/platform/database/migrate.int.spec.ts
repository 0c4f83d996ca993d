import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { migrate } from '@antiphon/database';
import { createTestDatabase, type TestDatabase } from '@antiphon/testing';

describe('migrate', () => {
  let database: TestDatabase;
  let dir: string;
  beforeAll(async () => {
    database = await createTestDatabase();
    dir = await mkdtemp(join(tmpdir(), 'antiphon-migrate-'));
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    // The clone has the real history; these specs write a different one.
    await client.query('truncate _prisma_migrations');
    await client.end();
  }, 60_000);
  afterAll(async () => {
    await rm(dir, { recursive: true });
    await database.drop();
  }, 60_000);
  const write = async (name: string, sql: string): Promise<void> => {
    await mkdir(join(dir, name), { recursive: true });
    await writeFile(join(dir, name, 'migration.sql'), sql);
  };

  it('applies pending migrations in order and once, with two processes as well', async () => {
    await write('2_second', 'alter table spec_a add column b int');
    await write('1_first', 'create table spec_a (a int)');
    const applied = await Promise.all([migrate(database.url, dir), migrate(database.url, dir)]);
    expect(applied.toSorted((a, b) => b.length - a.length)).toEqual([['1_first', '2_second'], []]);
    await write('3_third', 'alter table spec_a add column c int');
    expect(await migrate(database.url, dir)).toEqual(['3_third']);
  });

  it('rolls back and names a failing migration, and continues after its fix', async () => {
    await write('4_fourth', 'create table spec_b (a int); select nonsense');
    await expect(migrate(database.url, dir)).rejects.toMatchObject({
      code: 'DATABASE.MIGRATION_FAILED',
      message: expect.stringContaining('4_fourth'),
    });
    await write('4_fourth', 'create table spec_b (a int)');
    expect(await migrate(database.url, dir)).toEqual(['4_fourth']);
  });

  it('rejects a migration that was edited after it was applied', async () => {
    await write('1_first', 'create table spec_other (a int)');
    await expect(migrate(database.url, dir)).rejects.toMatchObject({ code: 'DATABASE.MIGRATION_EDITED' });
  });

  it('rejects as unavailable without a database', () =>
    expect(migrate('postgresql://postgres@127.0.0.1:1/none', dir)).rejects.toMatchObject({
      code: 'LOG.UNAVAILABLE',
    }));
});
