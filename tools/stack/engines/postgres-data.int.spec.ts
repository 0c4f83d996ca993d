import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { homeLayout } from '@antiphon/bootstrap/project';
import type { HomeLayout } from '@antiphon/bootstrap/project';
import { createTestDatabase } from '@antiphon/testing';
import { hasData, refuseEmptyDatabase } from '../home/lost-log.js';
import { ensureData } from './postgres-data.js';
import type { DataOptions } from './postgres-data.js';

/** Stands in for initdb: creates the file that marks the data. */
const INITDB = '#!/bin/sh\nwhile [ "$1" != "-D" ]; do shift; done\necho 18 > "$2/PG_VERSION"\n';
const isRoot = process.getuid?.() === 0;
const NOBODY = { uid: 65_534, gid: 65_534 };

let base: string;
let paths: HomeLayout;
let bin: string;
const notes: string[] = [];

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'antiphon-data-'));
  chmodSync(base, 0o711);
  paths = homeLayout(join(base, 'home'));
  bin = join(base, 'bin');
  for (const folder of [paths.postgres, paths.nats, bin]) mkdirSync(folder, { recursive: true, mode: 0o711 });
  writeFileSync(join(bin, 'initdb'), INITDB, { mode: 0o755 });
  notes.length = 0;
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

const ensure = (more: Partial<DataOptions> = {}): Promise<string> =>
  ensureData({
    ...{ paths, homeId: 'spec', password: 'spec', bin, version: '18.4', user: null },
    ...{ adopt: () => undefined, mayReplaceLostData: false, note: (line) => void notes.push(line) },
    ...{ endServer: () => Promise.resolve(), ...more },
  });
const root = (position: number, epoch = 1): string => `${JSON.stringify({ epoch, position })}\n`;

describe('the data of a home', () => {
  it('is created once, and found again', async () => {
    const data = await ensure();
    expect(data).toBe(join(paths.postgres, 'data'));
    expect(await ensure()).toBe(data);
  });

  it.each(['moved away', 'empty'])('is not replaced when its folder is %s', async (how) => {
    const data = await ensure();
    const record = readFileSync(paths.postgresFile, 'utf8');
    renameSync(data, `${data}.elsewhere`);
    if (how === 'empty') mkdirSync(data);
    await expect(ensure()).rejects.toThrow(
      /the log of this home was in .*What to do: .*mount.*ANTIPHON_HOME/s,
    );
    expect(existsSync(join(data, 'PG_VERSION'))).toBe(false);
    expect(readFileSync(paths.postgresFile, 'utf8')).toBe(record);
    rmSync(data, { recursive: true, force: true });
    renameSync(`${data}.elsewhere`, data);
    expect(await ensure()).toBe(data);
  });

  it('is not replaced when the record of its folder is lost, but signed roots name events', async () => {
    writeFileSync(join(paths.home, 'log-roots.jsonl'), `${root(12)}{"torn`);
    await expect(ensure()).rejects.toThrow(/this home had a log \(.*log-roots\.jsonl\)/);
    expect(existsSync(join(paths.postgres, 'data'))).toBe(false);
    expect(await ensure({ mayReplaceLostData: true })).toBe(join(paths.postgres, 'data'));
  });

  it('is not replaced when JetStream has the relay of a log', async () => {
    mkdirSync(join(paths.nats, 'jetstream', 'jetstream', '$G', 'streams', 'EVENTS'), { recursive: true });
    await expect(ensure()).rejects.toThrow(/this home had a log \(.*EVENTS\).*ANTIPHON_DATABASE_URL/s);
  });

  it('that cannot be read is not treated as missing', () => {
    const stat = (): never => {
      throw Object.assign(new Error('denied'), { code: 'EACCES' });
    };
    expect(() => hasData('/data', stat)).toThrow(/cannot be read \(EACCES\).*What to do: .*permissions/s);
  });

  (isRoot ? it : it.skip)('of root is placed in a durable folder, and moved there', async () => {
    chmodSync(paths.home, 0o700);
    const durable = join(base, 'durable');
    mkdirSync(durable, { mode: 0o711 });
    const options = { user: NOBODY, sharedFolder: () => durable };
    const first = await ensure(options);
    expect(first).toBe(join(durable, 'home-spec', 'data'));
    // An older version chose a folder for temporary files; this one is below such a folder, too.
    const old = join(base, 'antiphon-root');
    mkdirSync(old, { mode: 0o711 });
    renameSync(first, join(old, 'data'));
    writeFileSync(paths.postgresFile, JSON.stringify({ dataDir: join(old, 'data'), major: 18 }));
    expect(await ensure(options)).toBe(first);
    expect(notes).toEqual([expect.stringMatching(/moved its data from .*antiphon-root.* to .*durable/)]);
    expect(statSync(first).uid).toBe(NOBODY.uid);
    expect(existsSync(join(old, 'data'))).toBe(false);
  });
});

describe('an external database', () => {
  it('without the events that signed roots name is refused, before a migration', async () => {
    const file = join(paths.home, 'log-roots.jsonl');
    const database = await createTestDatabase();
    try {
      await refuseEmptyDatabase(paths, database.url, 'there');
      writeFileSync(file, root(12));
      await expect(refuseEmptyDatabase(paths, database.url, 'there')).rejects.toThrow(
        /the database at there has no events, but .*log-roots\.jsonl names event 12/,
      );
      // A restore of an empty log has begun a later epoch.
      writeFileSync(file, root(12, 0));
      await refuseEmptyDatabase(paths, database.url, 'there');
    } finally {
      await database.drop();
    }
  });
});
