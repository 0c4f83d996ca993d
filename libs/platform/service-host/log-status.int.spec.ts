import { createHash, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ALL_WORKSPACES, createPool } from '@antiphon/database';
import { createPostgresEventStore } from '@antiphon/event-store';
import { createTestDatabase, toStream, type TestDatabase } from '@antiphon/testing';
import type pg from 'pg';
import { LogStatus } from './log-status.module.js';

let database: TestDatabase;
let admin: pg.Pool;
let pool: pg.Pool;
let folder: string;
let status: LogStatus;

const clock = { ahead: 0, now: () => Date.now() + clock.ahead };
const SIGNER = { signs: true, refusal: null, everyMs: 600_000 };
const sha256Of = (text: string): Buffer => createHash('sha256').update(text).digest();

const insertArchive = (file: string, cut: number, content: string) =>
  admin.query(
    `insert into log_archives (archive_id, file, sha256, cut_position, events, streams, archived_at)
     values ($1, $2, $3, $4, 10, 2, now())`,
    [randomUUID(), file, sha256Of(content), cut],
  );

const park = (workspace: string, streamId: string) =>
  admin.query(
    `insert into projection_parked (projection, workspace, stream_id, position, reason, parked_at, tries, retry_at)
     values ('agent-sessions', $1, $2, 1, 'Error: no such column', now(), 5, null)`,
    [workspace, streamId],
  );

beforeAll(async () => {
  database = await createTestDatabase();
  admin = createPool({ url: database.url, applicationName: 'spec', workspace: ALL_WORKSPACES });
  pool = createPool({ url: database.urlFor('memory'), applicationName: 'spec', workspace: ALL_WORKSPACES });
  const agent = createPool({ url: database.urlFor('agent'), applicationName: 'spec' });
  const store = createPostgresEventStore(agent);
  await store.append({ workspace: 'default', streams: [toStream('session-one', 'any', 3)] });
  await store.close();
  await agent.end();
  folder = mkdtempSync(join(tmpdir(), 'antiphon-archives-'));
  status = new LogStatus(
    pool,
    { ANTIPHON_ARCHIVE_FOLDER: folder },
    { state: () => SIGNER, reportKeys: () => [] },
    clock,
  );
});
afterAll(async () => {
  await Promise.all([pool.end(), admin.end()]);
  await database.drop();
  rmSync(folder, { recursive: true, force: true });
});

describe('the reads of the state of the log', () => {
  it('list the parked streams of one workspace, each with the reason and its event', async () => {
    await Promise.all([park('default', 'session-one'), park('acme', 'session-two')]);
    const { streams, hasMore } = await status.listParked({ workspace: 'default', limit: 10 });
    expect([hasMore, streams]).toEqual([
      false,
      [
        expect.objectContaining({
          ...{ projection: 'agent-sessions', streamId: 'session-one', position: 1, tries: 5 },
          ...{ type: 'Noted', reason: 'Error: no such column', retryAt: null },
        }),
      ],
    ]);
    const other = await status.listParked({ workspace: 'acme', limit: 10 });
    expect(other.streams).toMatchObject([{ streamId: 'session-two', eventId: null, type: null }]);
    await park('default', 'session-more');
    expect(await status.listParked({ workspace: 'default', limit: 1 })).toMatchObject({ hasMore: true });
  });

  it('list projections with their lag, and count only the parked streams of the workspace', async () => {
    await admin.query(
      `insert into projection_checkpoints (name, position, epoch, updated_at) values ('agent-sessions', 1, 1, now())`,
    );
    expect(await status.listProjections({ workspace: 'acme' })).toMatchObject({
      head: 3,
      projections: [{ name: 'agent-sessions', service: 'agent', position: 1, lag: 2, parked: 1 }],
    });
  });

  it('compare each archive with its SHA-256, and name the missing and the changed ones', async () => {
    for (const [index, file] of ['intact', 'changed', 'missing'].entries())
      await insertArchive(file, index + 1, 'the content');
    writeFileSync(join(folder, 'intact'), 'the content');
    writeFileSync(join(folder, 'changed'), 'other content');
    const read = async () =>
      (await status.listArchives({ limit: 10 })).archives.map(({ file, state, bytes }) => [
        file,
        state,
        bytes,
      ]);
    expect(await read()).toEqual([
      ['missing', 'missing', null],
      ['changed', 'changed', 13],
      ['intact', 'intact', 11],
    ]);
    writeFileSync(join(folder, 'intact'), 'cut');
    expect((await read())[2]).toEqual(['intact', 'changed', 3]);
    const withoutFolder = new LogStatus(pool, {}, { state: () => SIGNER, reportKeys: () => [] }, clock);
    const { archives, folder: none } = await withoutFolder.listArchives({ limit: 1 });
    expect([none, archives]).toEqual([null, [expect.objectContaining({ state: 'unknown' })]]);
  });

  it('compare an archive again after 10 minutes, although its size and its time are the same', async () => {
    const path = join(folder, 'intact');
    const write = (content: string) => {
      writeFileSync(path, content);
      utimesSync(path, 1_700_000_000, 1_700_000_000);
    };
    const readIntact = async () =>
      (await status.listArchives({ limit: 10 })).archives.find(({ file }) => file === 'intact');
    write('the content');
    expect(await readIntact()).toMatchObject({ state: 'intact' });
    write('the c0ntent');
    expect(await readIntact()).toMatchObject({ state: 'intact' });
    clock.ahead = 11 * 60_000;
    const found = await readIntact();
    expect(found).toMatchObject({ state: 'changed' });
    expect(Date.parse(found?.checkedAt ?? '')).toBeGreaterThan(Date.now() + 10 * 60_000);
  });

  it('say that no root covers the log yet, and that there was no restore', async () => {
    expect(await status.readRoots({ limit: 5 })).toEqual({
      ...{ signs: true, refusal: null, head: 3, position: null, uncovered: 3, everySeconds: 600 },
      ...{ nextAt: null, roots: [] },
    });
    expect(await status.listRestores()).toEqual({ restores: [] });
  });
});
