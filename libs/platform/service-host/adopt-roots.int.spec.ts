import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { createPool } from '@antiphon/database';
import {
  adoptRoots,
  createLeaseStore,
  createPostgresEventStore,
  loadSigningKeys,
} from '@antiphon/event-store';
import type { EventStore, SignedTreeRoot } from '@antiphon/event-store';
import { connectNats } from '@antiphon/messaging';
import type { NatsLink } from '@antiphon/messaging';
import { silentLogger, systemClock } from '@antiphon/observability';
import { createTestDatabase } from '@antiphon/testing';
import type { TestDatabase } from '@antiphon/testing';
import { RootSigner } from './sign-log-roots.js';

let folder: string;
let database: TestDatabase;
let pool: pg.Pool;
let log: EventStore & { close(): Promise<void> };
let link: NatsLink;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'antiphon-adopt-'));
  database = await createTestDatabase();
  pool = createPool({ url: database.urlFor('memory'), applicationName: 'spec', max: 3 });
  log = createPostgresEventStore(pool);
  const url = process.env['ANTIPHON_TEST_NATS_URL'] ?? '';
  link = await connectNats({ url, service: 'memory', logger: silentLogger });
});
afterEach(async () => {
  await link.drain();
  await log.close();
  await pool.end();
  await database.drop();
  rmSync(folder, { recursive: true });
});

const rootsFile = () => join(folder, 'log-roots.jsonl');
const keys = () => loadSigningKeys(join(folder, 'log-signing.key'));
const roots = () =>
  readFileSync(rootsFile(), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as SignedTreeRoot);

/** Starts a signer, signs once and stops it. Returns the record and the reason of a refusal. */
const restartSigner = async () => {
  const signer = new RootSigner({
    ...{ pool, link, owner: randomUUID(), keys: keys(), rootsFile: rootsFile(), everyMs: 3_600_000 },
    ...{ leases: createLeaseStore(pool), clock: systemClock, logger: silentLogger },
  });
  const signed = await signer.sign();
  const refusal = signer.refusal();
  await signer.stop();
  return { signed, refusal };
};
const remember = () =>
  log.append({
    workspace: 'default',
    streams: [
      {
        ...{ streamId: `memory-${randomUUID()}`, expectedVersion: 0 },
        events: [
          {
            ...{ eventId: randomUUID(), type: 'FactLearned', schemaVersion: 1, data: { a: 1 } },
            metadata: { correlationId: 'spec', service: 'memory' },
          },
        ],
      },
    ],
  });
const adopt = (reason = 'the volume is new', actor = 'spec@host') =>
  adoptRoots({
    ...{ pool, keys: keys(), rootsFile: rootsFile(), actor, reason },
    at: new Date().toISOString(),
  });
/** Runs SQL as the owner of the database, with disabled triggers. */
const tamper = async (sql: string): Promise<void> => {
  const admin = new pg.Client({ connectionString: database.url });
  await admin.connect();
  await admin.query(`set session_replication_role = 'replica'`);
  await admin.query(sql);
  await admin.end();
};

describe('a signer without its file of roots', () => {
  it('signs no record 1 over older events, also where the table of roots is empty', async () => {
    await restartSigner();
    await remember();
    await tamper('delete from log_roots');
    rmSync(rootsFile());
    const { signed, refusal } = await restartSigner();
    expect(signed).toBeNull();
    expect(refusal).toContain('no signed root covers them');
    expect(refusal).toContain('antiphon roots adopt');
  });

  it('does not continue from the rows of the table, whose newest the owner can remove', async () => {
    await restartSigner();
    await remember();
    await restartSigner();
    await tamper('delete from log_roots where number > 1');
    await tamper('update events set hash = sha256(hash)');
    rmSync(rootsFile());
    const { signed, refusal } = await restartSigner();
    expect(signed).toBeNull();
    expect(refusal).toContain('does not prove which record is the newest');
  });

  it('signs again after a copy of the file was put back', async () => {
    await restartSigner();
    await remember();
    await restartSigner();
    renameSync(rootsFile(), `${rootsFile()}.copy`);
    await remember();
    expect((await restartSigner()).signed).toBeNull();
    renameSync(`${rootsFile()}.copy`, rootsFile());
    expect((await restartSigner()).signed).toMatchObject({ number: 3, position: 2 });
  });
});

describe('an adoption', () => {
  it('is a signed record with actor and reason, from which the signer goes on', async () => {
    await remember();
    expect((await restartSigner()).signed).toBeNull();
    const record = await adopt('upgrade of a home without roots');
    expect(record).toMatchObject({
      ...{ kind: 'adoption', number: 1, position: 1, previous: null },
      ...{ actor: 'spec@host', reason: 'upgrade of a home without roots' },
    });
    await remember();
    expect((await restartSigner()).signed).toMatchObject({ kind: 'root', number: 2, position: 2 });
    expect(roots().map(({ kind }) => kind)).toEqual(['adoption', 'root']);
  });

  it('continues the chain of the table and completes the file', async () => {
    await restartSigner();
    await remember();
    await restartSigner();
    rmSync(rootsFile());
    expect(await adopt()).toMatchObject({ number: 3, position: 1 });
    expect(roots().map(({ number }) => number)).toEqual([1, 2, 3]);
  });

  it('is refused where the roots begin with the log', async () => {
    await restartSigner();
    await remember();
    await restartSigner();
    await expect(adopt()).rejects.toMatchObject({ code: 'LOG.NOTHING_TO_ADOPT' });
  });

  it('is refused for a log that contradicts a known root', async () => {
    await restartSigner();
    await remember();
    await restartSigner();
    rmSync(rootsFile());
    await tamper('update events set hash = sha256(hash)');
    await expect(adopt()).rejects.toMatchObject({ code: 'LOG.ROOTS_DIFFER' });
    await tamper('delete from events');
    await expect(adopt()).rejects.toMatchObject({ code: 'LOG.ROOTS_DIFFER' });
  });

  it('is refused without a reason', async () => {
    await remember();
    await expect(adopt(' ')).rejects.toMatchObject({ code: 'LOG.BAD_ADOPTION' });
    await expect(adopt('x'.repeat(1_001))).rejects.toMatchObject({ code: 'LOG.BAD_ADOPTION' });
  });
});
