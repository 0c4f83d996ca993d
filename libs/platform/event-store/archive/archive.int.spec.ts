import { describe, expect, it } from '@jest/globals';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ALL_WORKSPACES, createPool } from '@antiphon/database';
import { freshStream, toStream } from '@antiphon/testing';
import { verifyChain } from '../integrity/event-hash.js';
import { archiveEvents } from './archive-events.js';
import { listArchives, restoreArchive } from './archive-log.js';
import {
  admin,
  agent,
  append,
  archiver,
  database,
  everything,
  fill,
  folder,
  inArchiveWorld,
  RULES,
  store,
  W,
} from './archive-world.spec.js';

inArchiveWorld();

const archive = (position: number, maxEvents?: number) =>
  archiveEvents({
    pool: agent,
    archiver,
    folder,
    rules: RULES,
    before: { position },
    ...(maxEvents ? { maxEvents } : {}),
  });

describe('an archive', () => {
  it('archives only event streams at rest and restores them bit for bit', async () => {
    const { old, older, open, growing, binding, cut } = await fill();
    const before = await everything();
    const made = await archive(cut);
    expect(made).toMatchObject({ streams: 2, events: 7, cutPosition: cut });
    expect(await everything()).toHaveLength(before.length - 7);
    for (const retained of [open, growing, binding])
      expect(await store.readStream(W, retained)).not.toEqual([]);
    for (const gone of [old, older])
      await expect(store.readStream(W, gone)).rejects.toMatchObject({
        code: 'LOG.ARCHIVED',
        data: { streamId: gone, archiveId: made?.archiveId },
      });
    await expect(store.readLog({ after: 0, limit: 10 })).rejects.toMatchObject({ code: 'LOG.ARCHIVED' });
    expect(await store.readLog({ after: cut, limit: 10 })).toHaveLength(1);
    expect(await archive(cut)).toBeNull();

    await restoreArchive(admin, folder, made!.archiveId);
    expect(await everything()).toEqual(before);
    expect(verifyChain(await store.readStream(W, old))).toMatchObject({ isIntact: true, version: 5 });
    expect(await listArchives(admin)).toEqual([]);
    expect(await store.readLog({ after: 0, limit: 100 })).toHaveLength(before.length);
  });

  it('continues versions and positions after an archive, and archives the later events too', async () => {
    const { old, cut } = await fill();
    await archive(cut);
    const head = await store.headPosition();
    expect(await store.append({ workspace: W, streams: [toStream(old, 5, 2)] })).toMatchObject({
      versions: [7],
      firstPosition: head + 1,
    });
    const later = await store.readStream(W, old, { fromVersion: 6 });
    expect(later.map(({ streamVersion }) => streamVersion)).toEqual([6, 7]);
    expect(await store.readStream(W, old, { backwards: true, limit: 2 })).toHaveLength(2);
    for (const options of [{ fromVersion: 5 }, { backwards: true }, { backwards: true, limit: 3 }])
      await expect(store.readStream(W, old, options)).rejects.toMatchObject({ code: 'LOG.ARCHIVED' });
    await append(freshStream(), 1);
    expect((await archive(head + 2))?.events).toBeGreaterThan(1);
    for (const { archiveId } of await listArchives(admin)) await restoreArchive(admin, folder, archiveId);
    expect(verifyChain(await store.readStream(W, old))).toMatchObject({ isIntact: true, version: 7 });
  });

  it('archives the oldest streams first and never the newest event', async () => {
    const streams = [freshStream(), freshStream(), freshStream()];
    for (const stream of streams) await append(stream, 4);
    const first = await archive(1_000, 5);
    expect(first).toMatchObject({ streams: 1, events: 4, cutPosition: 11 });
    await expect(store.readStream(W, streams[0]!)).rejects.toMatchObject({ code: 'LOG.ARCHIVED' });
    expect(await archive(1_000)).toMatchObject({ streams: 1, events: 4 });
    expect(await archive(1_000)).toBeNull();
    expect(await store.headPosition()).toBe(12);
    expect(await append(freshStream(), 1)).toMatchObject({ firstPosition: 13 });
  });

  it('archives only the streams of the named workspace', async () => {
    const [here, there] = [freshStream(), freshStream()];
    await append(here, 2);
    await store.append({ workspace: 'other', streams: [toStream(there, 0, 3)] });
    await append(freshStream(), 1);
    const what = { pool: agent, archiver, folder, rules: RULES, before: { position: 5 } };
    expect(await archiveEvents({ ...what, workspace: 'empty' })).toBeNull();
    expect(await archiveEvents({ ...what, workspace: 'other' })).toMatchObject({ streams: 1, events: 3 });
    expect(await store.readStream(W, here)).toHaveLength(2);
    await expect(store.readStream('other', there)).rejects.toMatchObject({ code: 'LOG.ARCHIVED' });
  });

  it('keeps its file when the response to the commit is lost', async () => {
    const { old, cut } = await fill();
    const before = await everything();
    // The commit succeeds, but its response never arrives.
    const url = database.urlFor('archiver');
    const cutOff = createPool({ url, workspace: ALL_WORKSPACES, applicationName: 'cut-off', max: 1 });
    cutOff.on('connect', (client) => {
      const query = client.query.bind(client) as (...given: unknown[]) => Promise<unknown>;
      const losing = async (...given: unknown[]): Promise<unknown> => {
        const result = await query(...given);
        const { rows } = await admin.query('select from log_archives');
        if (given[0] === 'commit' && rows.length > 0)
          throw Object.assign(new Error('Connection terminated unexpectedly'), { code: 'ECONNRESET' });
        return result;
      };
      client.query = losing as never;
    });
    await expect(
      archiveEvents({ pool: agent, archiver: cutOff, folder, rules: RULES, before: { position: cut } }),
    ).rejects.toMatchObject({ code: 'LOG.UNAVAILABLE' });
    await cutOff.end();
    await expect(store.readStream(W, old)).rejects.toMatchObject({ code: 'LOG.ARCHIVED' });
    const [made] = await listArchives(admin);
    await restoreArchive(admin, folder, made!.archiveId);
    expect(await everything()).toEqual(before);
  });

  it('loses no event during concurrent appends', async () => {
    const streams = Array.from({ length: 40 }, () => freshStream());
    await Promise.all(streams.map((stream) => append(stream, 3)));
    const appending = Promise.all(Array.from({ length: 60 }, (_, index) => append(streams[index % 20]!, 1)));
    const made = [];
    for (let round = 0; round < 5; round++)
      made.push(await archive(100).catch((error: { kind: string }) => expect(error.kind).toBe('transient')));
    await appending;
    for (const { archiveId } of await listArchives(admin)) await restoreArchive(admin, folder, archiveId);
    for (const stream of streams)
      expect(verifyChain(await store.readStream(W, stream))).toMatchObject({ isIntact: true });
    expect(await store.readLog({ after: 0, limit: 1_000 })).toHaveLength(180);
  });

  it('keeps events that a projection has not seen, and parked streams', async () => {
    const { old, cut } = await fill();
    const put = (position: number) =>
      admin.query(
        `insert into projection_checkpoints values ('p', $1, 1, now()) on conflict (name) do update set position = $1`,
        [position],
      );
    await put(6);
    expect(await archive(cut)).toMatchObject({ streams: 1, events: 2, cutPosition: 6 });
    expect(await store.readStream(W, old)).toHaveLength(5);
    await put(cut);
    await admin.query(`insert into projection_parked values ('p', $1, $2, 1, 'spec', now())`, [W, old]);
    expect(await archive(cut)).toBeNull();
  });
});

describe('the protection of archived events', () => {
  it('rejects a delete without a checkpoint for every role', async () => {
    const { old } = await fill();
    await expect(admin.query('delete from events where stream_id = $1', [old])).rejects.toThrow(
      'append-only',
    );
    await expect(agent.query('delete from events')).rejects.toMatchObject({ code: '42501' });
    await expect(
      agent.query(
        `insert into archived_streams select workspace, stream_id, 1, version, hash, gen_random_uuid() from stream_heads`,
      ),
    ).rejects.toMatchObject({ code: '42501' });
    await expect(admin.query('update archived_streams set to_version = 0')).rejects.toThrow('append-only');
  });

  it('rejects a checkpoint that is not the head of its stream, and the newest event', async () => {
    const { old, cut } = await fill();
    const take = async (position: number, version: number, hash: string) => {
      const { rows } = await agent.query<{ id: string }>(
        `insert into archive_requests (archive_id, file, sha256, cut_position)
         values (gen_random_uuid(), 'f', '\\x00', $1) returning archive_id as id`,
        [position],
      );
      return archiver.query(
        `select antiphon_archive($6, 'f', '\\x00', $1, array[$2], array[$3], array[1::bigint], array[$4::bigint], array[$5::bytea])`,
        [position, W, old, version, hash, rows[0]?.id],
      );
    };
    await expect(take(cut, 5, '\\x00')).rejects.toThrow('has grown');
    await expect(take(cut, 4, '\\x00')).rejects.toThrow('has grown');
    await expect(take(cut + 1, 5, '\\x00')).rejects.toThrow('newest event');
    expect(await store.readStream(W, old)).toHaveLength(5);
  });

  it('refuses a recorded file outside of the folder', async () => {
    await admin.query('alter table log_archives drop constraint log_archives_file');
    await admin.query(
      `insert into log_archives values (gen_random_uuid(), '../elsewhere', '\\x00', 0, 1, 1, now())`,
    );
    await expect(listArchives(admin)).rejects.toMatchObject({ code: 'LOG.ARCHIVE_DAMAGED' });
  });

  it('restores nothing from a file that is changed, missing or of another archive', async () => {
    const { cut } = await fill();
    const made = (await archive(cut))!;
    const file = join(folder, made.file);
    const whole = await readFile(file);
    const restore = () => restoreArchive(admin, folder, made.archiveId);
    await writeFile(file, Buffer.concat([whole, Buffer.from('x')]));
    await expect(restore()).rejects.toMatchObject({ code: 'LOG.ARCHIVE_DAMAGED' });
    await rm(file);
    await expect(restore()).rejects.toMatchObject({ code: 'LOG.ARCHIVE_DAMAGED' });
    await writeFile(file, whole);
    await expect(restoreArchive(admin, folder, '0192f0c1-7a2b-7c3d-8e4f-000000000001')).rejects.toMatchObject(
      { code: 'LOG.ARCHIVE_UNKNOWN' },
    );
    await restore();
    await expect(restore()).rejects.toMatchObject({ code: 'LOG.ARCHIVE_UNKNOWN' });
  });
});
