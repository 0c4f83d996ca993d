import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createTestDatabase, type TestDatabase } from '@antiphon/testing';

const DIFF = fileURLToPath(new URL('fixtures/schema-diff.mjs', import.meta.url));
const SCHEMA = fileURLToPath(new URL('../../../prisma/schema', import.meta.url));

describe('prisma/schema and prisma/migrations', () => {
  let database: TestDatabase;
  let copy: string;
  beforeAll(async () => {
    database = await createTestDatabase();
    copy = await mkdtemp(join(tmpdir(), 'antiphon-schema-'));
    await cp(SCHEMA, copy, { recursive: true });
  }, 60_000);
  afterAll(async () => {
    await rm(copy, { recursive: true });
    await database.drop();
  }, 60_000);

  const diff = async (schemaDir: string): Promise<{ drifted: boolean; script: string }> => {
    const { stdout } = await promisify(execFile)(process.execPath, [DIFF, database.url, schemaDir], {
      env: { PATH: process.env['PATH'] },
    });
    return JSON.parse(stdout) as { drifted: boolean; script: string };
  };

  it(
    'describe the same tables',
    async () =>
      expect(await diff(SCHEMA)).toEqual({
        drifted: false,
        script: expect.stringContaining('empty migration'),
      }),
    30_000,
  );

  it('differ when a column differs', async () => {
    const file = join(copy, 'log.prisma');
    await writeFile(file, (await readFile(file, 'utf8')).replace(/epoch( +)BigInt/, 'era$1BigInt'));
    expect(await diff(copy)).toMatchObject({ drifted: true, script: expect.stringContaining('"era"') });
  }, 30_000);
});
