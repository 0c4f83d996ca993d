import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import { createPool } from '@antiphon/database';
import {
  createPostgresEventStore,
  listArchives,
  proposeArchive,
  restoreArchive,
} from '@antiphon/event-store';
import { silentLogger } from '@antiphon/observability';
import { createTestDatabase, freshStream, toStream, until } from '@antiphon/testing';
import type { TestDatabase } from '@antiphon/testing';
import { ArchiverModule } from './archiver.module.js';
import { startService } from './start-service.js';
import type { RunningService } from './start-service.js';
import { serviceEnv } from './testing/service-env.js';

const RULES = [
  { category: 'session', retainedPrefix: null, pairs: [{ begins: ['Asked'], ends: ['Answered'] }] },
];

let folder: string;
let database: TestDatabase;
let admin: pg.Pool;
let agent: pg.Pool;
let service: RunningService | undefined;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'antiphon-archiver-'));
  database = await createTestDatabase();
  admin = createPool({ url: database.url, applicationName: 'spec', max: 2 });
  agent = createPool({ url: database.urlFor('agent'), applicationName: 'spec', max: 2 });
  const store = createPostgresEventStore(agent);
  for (let n = 0; n < 2; n++)
    await store.append({ workspace: 'default', streams: [toStream(freshStream(), 0, 3)] });
  await store.close();
});
afterEach(async () => {
  await service?.stop();
  service = undefined;
  await Promise.all([admin.end(), agent.end()]);
  await database.drop();
  rmSync(folder, { recursive: true });
});

const start = async (env: Record<string, string>): Promise<void> => {
  const shared = serviceEnv('memory', database, process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  const definition = { service: 'memory', module: ArchiverModule } as const;
  service = await startService({
    ...definition,
    env: { ...shared, ...env },
    cwd: folder,
    logger: silentLogger,
  });
};
const propose = async () =>
  (await proposeArchive({ pool: agent, folder, rules: RULES, before: { position: 3 } }))!;

describe('the archiver of the memory service', () => {
  it('takes requested events out of the log with a credential of its own', async () => {
    const url = database.urlFor('archiver');
    await start({ ANTIPHON_ARCHIVER_DATABASE_URL: url, ANTIPHON_ARCHIVE_FOLDER: folder });
    const { archiveId } = await propose();
    await until(async () => (await listArchives(admin)).length === 1);
    await restoreArchive(admin, folder, archiveId);
  });

  it('executes nothing without its credential, although the memory role is connected', async () => {
    await start({ ANTIPHON_ARCHIVE_FOLDER: folder });
    await propose();
    await expect(
      admin.query(
        `set role antiphon_memory; select antiphon_archive(null, '', '', 0, null, null, null, null, null)`,
      ),
    ).rejects.toMatchObject({ code: '42501' });
    expect(await listArchives(admin)).toEqual([]);
  });

  it('refuses a folder that is not absolute', async () => {
    const env = { ANTIPHON_ARCHIVER_DATABASE_URL: database.urlFor('archiver'), ANTIPHON_ARCHIVE_FOLDER: 'x' };
    await expect(start(env)).rejects.toMatchObject({ code: 'SERVICE.BAD_ENVIRONMENT' });
  });
});
