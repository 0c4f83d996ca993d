import { describe, expect, it } from '@jest/globals';
import { createHash } from 'node:crypto';
import { readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { listArchives, proposeArchive, restoreArchive, withdrawArchive } from './archive-log.js';
import { listArchiveRequests } from './archive-requests.js';
import {
  admin,
  agent,
  append,
  archiver,
  everything,
  fill,
  folder,
  inArchiveWorld,
  RULES,
} from './archive-world.spec.js';
import { executeArchive, settleArchiveRequests } from './execute-archive.js';

inArchiveWorld();

describe('the archiver', () => {
  const propose = async (cut: number) =>
    (await proposeArchive({ pool: agent, folder, rules: RULES, before: { position: cut } }))!;
  const settle = () => settleArchiveRequests(archiver, folder);
  /** Rewrites the file and the request, as a compromised agent could. */
  const forge = async (file: string, change: (lines: string[]) => string[]) => {
    const lines = gunzipSync(await readFile(join(folder, file)))
      .toString()
      .trim()
      .split('\n');
    const forged = gzipSync(`${change(lines).join('\n')}\n`);
    await writeFile(join(folder, file), forged);
    const sha256 = createHash('sha256').update(forged).digest();
    await admin.query('update archive_requests set sha256 = $1 where file = $2', [sha256, file]);
  };

  it('takes the events of a request out of the log, which until then has all of them', async () => {
    const { cut } = await fill();
    const before = await everything();
    const { archiveId, file, streams, events } = await propose(cut);
    expect(await everything()).toEqual(before);
    expect(await listArchiveRequests(agent)).toMatchObject([{ archiveId, file, refusal: null }]);
    expect(await settle()).toMatchObject([{ archived: { archiveId, streams, events } }]);
    expect(await everything()).toHaveLength(before.length - events);
    expect(await listArchiveRequests(agent)).toEqual([]);
    expect(await settle()).toEqual([]);
    await restoreArchive(admin, folder, archiveId);
    expect(await everything()).toEqual(before);
  });

  it('executes a request once, when two archivers settle it at the same time', async () => {
    const { cut } = await fill();
    const { archiveId, events } = await propose(cut);
    const outcomes = (await Promise.all([settle(), settle()])).flat();
    for (const outcome of outcomes) expect(outcome).toMatchObject({ archived: { archiveId, events } });
    expect(await listArchives(admin)).toHaveLength(1);
  });

  it.each<[string, (lines: string[]) => string[], RegExp]>([
    [
      'another content',
      (lines) => lines.map((line) => line.replace('"data": {', '"data": {"x": 1, ')),
      /does not have/,
    ],
    ['an event less at its end', (lines) => lines.slice(0, -1), /has grown/],
    ['an event less at its start', ([header = '', , ...lines]) => [header, ...lines], /does not begin/],
    ['two events in another order', ([h = '', a = '', b = '', ...l]) => [h, b, a, ...l], /does not begin/],
    [
      'an event twice',
      ([header = '', first = '', ...lines]) => [header, first, first, ...lines],
      /breaks the chain/,
    ],
    ['a line that is no event', (lines) => [...lines, 'x'], /invalid input syntax/],
    [
      'the header of another archive',
      ([, ...lines]) => ['{"archiveId":"x","format":1}', ...lines],
      /another archive/,
    ],
  ])('refuses a file with %s, and nothing leaves the log', async (_, change, reason) => {
    const { cut } = await fill();
    const before = await everything();
    const { file, archiveId } = await propose(cut);
    await forge(file, change);
    expect(await settle()).toMatchObject([{ refusal: expect.any(Error) }]);
    expect((await listArchiveRequests(agent))[0]?.refusal).toMatch(reason);
    expect(await everything()).toEqual(before);
    expect(await listArchives(admin)).toEqual([]);
    // The refusal is final, even if the file becomes whole again.
    await expect(
      executeArchive(archiver, folder, { ...(await listArchiveRequests(agent))[0]!, archiveId }),
    ).rejects.toMatchObject({ code: expect.any(String) });
    expect(await settle()).toEqual([]);
  });

  it('refuses a file that is missing, changed or outside of its folder', async () => {
    const { cut } = await fill();
    const changed = await propose(cut);
    await writeFile(join(folder, changed.file), 'x');
    expect(await settle()).toMatchObject([{ refusal: { code: 'LOG.ARCHIVE_DAMAGED' } }]);
    const missing = await propose(cut);
    await rm(join(folder, missing.file));
    expect(await settle()).toMatchObject([{ refusal: { code: 'LOG.ARCHIVE_DAMAGED' } }]);
    await expect(
      executeArchive(archiver, folder, { ...missing, file: '../x', refusal: null }),
    ).rejects.toMatchObject({ code: 'LOG.ARCHIVE_DAMAGED' });
  });

  it('refuses a stream that has grown since its file was written', async () => {
    const { old, cut } = await fill();
    await propose(cut);
    await append(old, 1);
    expect(await settle()).toMatchObject([{ refusal: { kind: 'transient' } }]);
    expect((await listArchiveRequests(agent))[0]?.refusal).toBe(`event stream ${old} has grown`);
  });

  it('keeps the file of a request that waits, and withdraws a refused one with its file', async () => {
    const { old, cut } = await fill();
    const request = await propose(cut);
    expect(await withdrawArchive(agent, folder, request)).toBe(false);
    expect(await readdir(folder)).toEqual([request.file]);
    await append(old, 1);
    await settle();
    expect(await withdrawArchive(agent, folder, request)).toBe(true);
    expect([await readdir(folder), await listArchiveRequests(agent)]).toEqual([[], []]);
  });
});
