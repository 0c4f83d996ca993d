import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { createPublicKey, randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import { LOG_ROOT_SUBJECT } from '@antiphon/contracts/log';
import { createPool } from '@antiphon/database';
import { createLeaseStore, createPostgresEventStore, isSignedBy, readLogRoot } from '@antiphon/event-store';
import type { EventStore, SignedLogRoot } from '@antiphon/event-store';
import { connectNats } from '@antiphon/messaging';
import type { NatsLink } from '@antiphon/messaging';
import { silentLogger, systemClock } from '@antiphon/observability';
import { createTestDatabase } from '@antiphon/testing';
import type { TestDatabase } from '@antiphon/testing';
import { readLogRootsEnv } from './log-roots.module.js';
import { RootSigner } from './sign-log-roots.js';
import { loadSigningKey } from '@antiphon/event-store';

let folder: string;
let database: TestDatabase;
let pool: pg.Pool;
let log: EventStore & { close(): Promise<void> };
let link: NatsLink;
let signers: RootSigner[];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'antiphon-roots-'));
  database = await createTestDatabase();
  pool = createPool({ url: database.urlFor('memory'), applicationName: 'spec', max: 3 });
  log = createPostgresEventStore(pool);
  const url = process.env['ANTIPHON_TEST_NATS_URL'] ?? '';
  link = await connectNats({ url, service: 'memory', logger: silentLogger });
  signers = [];
});
afterEach(async () => {
  await Promise.all(signers.map((signer) => signer.stop()));
  await link.drain();
  await log.close();
  await pool.end();
  await database.drop();
  rmSync(folder, { recursive: true });
});

const keyFile = () => join(folder, 'credentials', 'log-signing.key');
const rootsFile = () => join(folder, 'log-roots.jsonl');
const roots = () =>
  readFileSync(rootsFile(), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as SignedLogRoot);

const signer = (owner: string, key = loadSigningKey(keyFile())): RootSigner => {
  const started = new RootSigner({
    ...{ pool, link, owner, key, rootsFile: rootsFile(), everyMs: 3_600_000 },
    ...{ leases: createLeaseStore(pool), clock: systemClock, logger: silentLogger },
  });
  signers.push(started);
  return started;
};
const remember = () =>
  log.append({
    workspace: 'default',
    streams: [
      {
        streamId: `memory-${randomUUID()}`,
        expectedVersion: 0,
        events: [
          {
            ...{ eventId: randomUUID(), type: 'FactLearned', schemaVersion: 1, data: { a: 1 } },
            metadata: { correlationId: 'spec', service: 'memory' },
          },
        ],
      },
    ],
  });

describe("the log's root", () => {
  it('is signed to the file and the subject, and again only after the log has grown', async () => {
    const told = link.connection.subscribe(LOG_ROOT_SUBJECT, { max: 1 });
    await remember();
    const one = signer('one');
    const first = await one.sign();
    expect(first).toMatchObject({ format: 1, epoch: 1, position: 1, streams: 1 });
    expect(await one.sign()).toBeNull();
    await remember();
    const second = await one.sign();
    expect(second).toMatchObject({ position: 2, streams: 2 });
    expect(roots()).toEqual([first, second]);
    for await (const message of told) expect(message.json()).toEqual(first);
    expect(second?.root).toBe((await readLogRoot(pool, '')).root);
  });

  it('is signed by one process at a time', async () => {
    await remember();
    const [one, two] = [signer('one'), signer('two')];
    expect(await one.sign()).not.toBeNull();
    await remember();
    expect(await two.sign()).toBeNull();
    await one.stop();
    expect(await two.sign()).toMatchObject({ position: 2 });
  });

  it('is verifiable with the public key; a changed root or another key fails', async () => {
    await remember();
    const key = loadSigningKey(keyFile());
    const signed = (await signer('one', key).sign()) as SignedLogRoot;
    expect(isSignedBy(signed, createPublicKey(key))).toBe(true);
    expect(isSignedBy({ ...signed, position: 2 } as SignedLogRoot, createPublicKey(key))).toBe(false);
    const other = createPublicKey(loadSigningKey(join(folder, 'other.key')));
    expect(isSignedBy(signed, other)).toBe(false);
  });
});

describe('the signing key', () => {
  it('is created once, readable by its owner only', () => {
    const made = loadSigningKey(keyFile());
    expect(statSync(keyFile()).mode & 0o777).toBe(0o600);
    expect(loadSigningKey(keyFile()).equals(made)).toBe(true);
  });

  it('is rejected by file name when it is invalid, without its content', () => {
    const file = join(folder, 'bad.key');
    writeFileSync(file, 'no key at all');
    expect(() => loadSigningKey(file)).toThrow(/bad\.key must hold an Ed25519 private key/);
  });

  it('and the file of roots are in the home by default', () => {
    expect(readLogRootsEnv({ ANTIPHON_HOME: '/h', ANTIPHON_LOG_ROOT_EVERY_S: '' })).toEqual({
      keyFile: '/h/credentials/log-signing.key',
      rootsFile: '/h/log-roots.jsonl',
      everyMs: 600_000,
    });
    expect(() => readLogRootsEnv({ ANTIPHON_HOME: '/h', ANTIPHON_LOG_ROOT_EVERY_S: '0' })).toThrow(
      /ANTIPHON_LOG_ROOT_EVERY_S/,
    );
  });
});
