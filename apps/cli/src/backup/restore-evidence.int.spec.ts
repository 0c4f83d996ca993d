import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { createHash, randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import type pg from 'pg';
import { runAudit } from '@antiphon/audit-features';
import type { AuditReport } from '@antiphon/audit-features';
import { createPool } from '@antiphon/database';
import {
  appendRoots,
  canonicalJson,
  createPostgresEventStore,
  findNewestRoot,
  genesisHash,
  growTree,
  hashEvent,
  hashRecord,
  loadSigningKeys,
  LogTree,
  parseRootLines,
  readLogState,
  signContent,
  storeRoot,
} from '@antiphon/event-store';
import type { SignedTreeRoot, SigningKeys, TreeRoot } from '@antiphon/event-store';
import type { JsonObject } from '@antiphon/kernel';
import { createTestDatabase } from '@antiphon/testing';
import type { TestDatabase } from '@antiphon/testing';
import type { CommandContext } from '../output.js';
import { runBackup } from './run-backup.js';
import { runRestore } from './run-restore.js';

let database: TestDatabase;
let home: string;
let backup: string;
let keys: SigningKeys;
let printed: unknown[];

beforeEach(async () => {
  database = await createTestDatabase();
  home = mkdtempSync(join(tmpdir(), 'antiphon-evidence-'));
  backup = join(home, 'backup');
  keys = loadSigningKeys(join(home, 'credentials', 'log-signing.key'));
  printed = [];
});
afterEach(async () => {
  await database.drop();
  rmSync(home, { recursive: true });
});

const context = (env: Record<string, string> = {}): CommandContext => ({
  output: {
    json: true,
    result: (document) => void printed.push(document),
    line: () => undefined,
    note: () => undefined,
    piece: () => undefined,
    failure: () => Promise.resolve(),
  },
  env: { ANTIPHON_DATABASE_URL: database.url, ANTIPHON_HOME: home, ...env },
  cwd: home,
  gateway: () => Promise.reject(new Error('spec')),
  http: () => Promise.reject(new Error('spec')),
});
const rootsFile = () => join(home, 'log-roots.jsonl');
const readRoots = () => parseRootLines(readFileSync(rootsFile(), 'utf8')).roots as SignedTreeRoot[];

const withPool = async <T>(work: (pool: pg.Pool) => Promise<T>, url = database.url): Promise<T> => {
  const pool = createPool({ url, applicationName: 'spec', max: 2 });
  return work(pool).finally(() => pool.end());
};

const stream = `memory-${randomUUID()}`;
const remember = (count: number): Promise<void> =>
  withPool(async (pool) => {
    const log = createPostgresEventStore(pool);
    const metadata = { correlationId: 'spec', service: 'memory' };
    for (let i = 0; i < count; i++) {
      const data = { text: `fact ${i}` };
      const events = [{ eventId: randomUUID(), type: 'FactLearned', schemaVersion: 1, data, metadata }];
      await log.append({
        workspace: 'default',
        streams: [{ streamId: stream, expectedVersion: 'any', events }],
      });
    }
    await log.close();
  }, database.urlFor('memory'));

/** Signs the log as the memory service does: into the table and the file. */
const sign = (): Promise<void> =>
  withPool(async (pool) => {
    const state = await readLogState(pool);
    const tree = new LogTree();
    await growTree(pool, tree, state.position);
    const last = existsSync(rootsFile()) ? findNewestRoot(readRoots()) : null;
    // The first record adopts the log, because it has events already.
    const kind: Partial<TreeRoot> = last
      ? { kind: 'root', reason: null }
      : { kind: 'adoption', actor: 'spec@host', reason: 'first record of a spec' };
    const root = {
      ...tree.save(),
      ...{ format: 2, number: (last?.number ?? 0) + 1, epoch: state.epoch, root: tree.hash() },
      ...{ previous: last && hashRecord(last), at: new Date().toISOString(), continues: null, ...kind },
    } as TreeRoot;
    const signed = signContent(root, keys.privateKey);
    await storeRoot(pool, signed);
    await appendRoots(rootsFile(), [signed]);
  });

const audit = (): Promise<AuditReport> =>
  withPool((pool) => runAudit({ pool, trusted: { publicKeys: keys.publicKeys, roots: readRoots() } }));

type Row = Record<string, unknown>;
const changeTable = (name: string, change: (rows: Row[]) => void): void => {
  const file = join(backup, 'tables', `${name}.jsonl.gz`);
  const rows = gunzipSync(readFileSync(file))
    .toString()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Row);
  change(rows);
  writeFileSync(file, gzipSync(rows.map((row) => `${JSON.stringify(row)}\n`).join('')));
  const manifestFile = join(backup, 'manifest.json');
  const manifest = JSON.parse(readFileSync(manifestFile, 'utf8')) as {
    tables: { name: string; sha256: string }[];
  };
  for (const table of manifest.tables)
    if (table.name === name) table.sha256 = createHash('sha256').update(readFileSync(file)).digest('hex');
  writeFileSync(manifestFile, JSON.stringify(manifest));
};

/** Rewrites an event of the backup with its chain, its head and the digests of the manifest. */
const launder = (): void => {
  let hash = genesisHash('default');
  changeTable('events', (rows) => {
    rows.sort((a, b) => Number(a['position']) - Number(b['position']));
    for (const row of rows) {
      if (row['stream_version'] === 2) row['data'] = { text: 'never learned' };
      hash = hashEvent(hash, {
        ...{ streamId: String(row['stream_id']), streamVersion: Number(row['stream_version']) },
        ...{
          eventId: String(row['event_id']),
          type: String(row['type']),
          schemaVersion: Number(row['schema_version']),
        },
        data: canonicalJson(row['data'] as JsonObject),
        metadata: canonicalJson(row['metadata'] as JsonObject),
      });
      row['hash'] = `\\x${hash.toString('hex')}`;
    }
  });
  changeTable('stream_heads', ([head]) => void (head!['hash'] = `\\x${hash.toString('hex')}`));
};

const dropSignature = (): void => {
  const file = join(backup, 'manifest.json');
  const {
    keyId: _key,
    signature: _signature,
    ...manifest
  } = JSON.parse(readFileSync(file, 'utf8')) as JsonObject;
  writeFileSync(file, JSON.stringify(manifest));
};

describe('a signed restore', () => {
  it('verifies the backup and continues the chain with a record of the new epoch', async () => {
    await remember(3);
    await sign();
    await remember(1);
    await runBackup(context(), backup, {});
    await remember(2);
    await sign();
    await runRestore(context(), backup, {});
    expect(printed.at(-1)).toMatchObject({ epoch: 2, signing: { record: 3, signedPosition: 3 } });
    const record = readRoots().at(-1)!;
    expect(record).toMatchObject({ kind: 'epoch', number: 3, epoch: 2, continues: 1, position: 4 });
    expect(record.previous).toBe(hashRecord(readRoots()[1]!));
    expect(record.reason).toMatch(/^restore of [0-9a-f]{64}$/);
    expect(await audit()).toMatchObject({ ok: true, signing: { state: 'signed', position: 4 } });
    await remember(2);
    await sign();
    await runBackup(context(), `${backup}-2`, {});
    await runRestore(context(), `${backup}-2`, {});
    expect(readRoots().at(-1)).toMatchObject({ epoch: 3, continues: 2, position: 6 });
    expect(await audit()).toMatchObject({ ok: true });
  });

  it('refuses a laundered backup by its manifest', async () => {
    await remember(3);
    await sign();
    await runBackup(context(), backup, {});
    launder();
    const changed = {
      code: 'BACKUP.UNSIGNED',
      message: expect.stringContaining('changed, or signed with another key'),
    };
    await expect(runRestore(context(), backup, {})).rejects.toMatchObject(changed);
    dropSignature();
    await expect(runRestore(context(), backup, {})).rejects.toMatchObject({ code: 'BACKUP.UNSIGNED' });
    expect(await audit()).toMatchObject({ ok: true });
  });

  it('refuses a laundered backup by its roots although the manifest is accepted unsigned', async () => {
    await remember(3);
    await sign();
    await runBackup(context(), backup, {});
    launder();
    dropSignature();
    await expect(runRestore(context(), backup, { allowUnsigned: true })).rejects.toMatchObject({
      code: 'BACKUP.FORGED',
      message: expect.stringContaining('up to position 3, is not the one that record 1 signed'),
    });
    expect(await audit()).toMatchObject({ ok: true });
  });

  it('refuses a broken chain after the newest root', async () => {
    await remember(1);
    await sign();
    await remember(2);
    await runBackup(context(), backup, {});
    changeTable('events', (rows) => {
      for (const row of rows) if (row['stream_version'] === 2) row['data'] = { text: 'never learned' };
    });
    dropSignature();
    await expect(runRestore(context(), backup, { allowUnsigned: true })).rejects.toMatchObject({
      code: 'BACKUP.FORGED',
      message: expect.stringContaining(`its content does not have its hash (${stream} 2)`),
    });
  });

  it('of a laundered backup without keys is found by the next audit', async () => {
    await remember(3);
    await sign();
    await runBackup(context(), backup, {});
    launder();
    dropSignature();
    const foreign = { ANTIPHON_HOME: mkdtempSync(join(home, 'elsewhere-')) };
    await expect(runRestore(context(foreign), backup, {})).rejects.toMatchObject({
      code: 'BACKUP.UNSIGNED',
    });
    await runRestore(context(foreign), backup, { allowUnsigned: true });
    const report = await audit();
    expect(report.ok).toBe(false);
    expect(report.first?.message).toContain(
      'the log is of epoch 2; no signed record says that it continues epoch 1',
    );
  });

  it('adopts a database that another tool restored to an older state, and no other', async () => {
    await remember(2);
    await sign();
    await remember(2);
    await sign();
    const tamper = (sql: string): Promise<unknown> =>
      withPool(async (pool) => {
        const client = await pool.connect();
        await client.query(`set session_replication_role = 'replica'`);
        await client.query(sql);
        client.release(true);
      });
    await tamper('delete from events where position > 3; delete from log_roots where number > 1');
    await tamper(`update stream_heads set version = 3, hash = (select hash from events where position = 3)`);
    expect((await audit()).first?.message).toContain(
      'the log ends at position 3; a root was signed at position 4',
    );
    await runRestore(context(), undefined, { adopt: true });
    expect(readRoots().at(-1)).toMatchObject({
      kind: 'epoch',
      number: 3,
      epoch: 2,
      continues: 1,
      position: 3,
    });
    expect(await audit()).toMatchObject({ ok: true, signing: { state: 'signed', position: 3 } });
    await tamper(`update events set recorded_at = now() - interval '1 day' where position = 1`);
    await expect(runRestore(context(), undefined, { adopt: true })).rejects.toMatchObject({
      code: 'BACKUP.FORGED',
    });
  });

  it('adopts a log whose key is lost, only where unsigned roots are allowed', async () => {
    await remember(2);
    await sign();
    rmSync(rootsFile());
    keys = loadSigningKeys(join(home, 'new.key'));
    const choice = { adopt: true, key: join(home, 'new.key') };
    await expect(runRestore(context(), undefined, choice)).rejects.toMatchObject({ code: 'LOG.ROOT_FORKED' });
    await runRestore(context(), undefined, { ...choice, allowUnsigned: true });
    expect(await audit()).toMatchObject({ ok: true, signing: { state: 'signed', position: 2 } });
  });

  it('accepts an unsigned backup where no key exists only with --allow-unsigned', async () => {
    const foreign = context({ ANTIPHON_HOME: mkdtempSync(join(home, 'elsewhere-')) });
    await remember(3);
    await runBackup(foreign, backup, {});
    await expect(runRestore(foreign, backup, {})).rejects.toMatchObject({ code: 'BACKUP.UNSIGNED' });
    await runRestore(foreign, backup, { allowUnsigned: true });
    expect(printed).toMatchObject([
      { keyId: null },
      { epoch: 2, signing: { record: null, signedPosition: null } },
    ]);
  });
});

describe('antiphon restore --list', () => {
  it('shows the restores of the database, the newest first, with the schemas that they replaced', async () => {
    await runRestore(context(), undefined, { list: true });
    expect(printed).toEqual([{ restores: [] }]);
    await remember(1);
    await runBackup(context(), backup, {});
    await runRestore(context(), backup, {});
    await remember(1);
    await runBackup(context(), `${backup}-2`, {});
    await runRestore(context(), `${backup}-2`, {});
    await runRestore(context(), undefined, { list: true });
    const { restores } = printed.at(-1) as { restores: Row[] };
    expect(restores).toMatchObject([
      { phase: 'finished', folder: `${backup}-2`, oldSchema: expect.stringMatching(/^antiphon_before_/) },
      { phase: 'finished', folder: backup, oldSchema: expect.stringMatching(/^antiphon_before_/) },
    ]);
    expect(String(restores[0]!['beganAt']) > String(restores[1]!['beganAt'])).toBe(true);
    const schemas = await withPool((pool) =>
      pool.query<{ name: string }>(`select nspname as name from pg_namespace where nspname like 'antiphon%'`),
    );
    const names = schemas.rows.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(restores.map((one) => one['oldSchema'])));
  });

  it('is refused together with another choice', async () => {
    await expect(runRestore(context(), backup, { list: true })).rejects.toMatchObject({ code: 'CLI.USAGE' });
  });
});
