import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { createPool } from '@antiphon/database';
import { createLeaseStore, createPostgresEventStore } from '@antiphon/event-store';
import type { EventStore, loadSigningKeys, SignedTreeRoot } from '@antiphon/event-store';
import { connectNats } from '@antiphon/messaging';
import type { NatsLink } from '@antiphon/messaging';
import { silentLogger, systemClock } from '@antiphon/observability';
import { createTestDatabase } from '@antiphon/testing';
import type { TestDatabase } from '@antiphon/testing';
import { RootSigner } from '../sign-log-roots.js';

export interface SignerSettings {
  readonly keys: ReturnType<typeof loadSigningKeys>;
  readonly owner?: string;
  readonly rootsFile?: string;
  readonly recheckEvents?: number;
}

/** A log, a folder for the signed roots, and the parts of a signer. */
export class RootsWorld {
  private readonly signers: RootSigner[] = [];

  private constructor(
    readonly folder: string,
    readonly database: TestDatabase,
    readonly pool: pg.Pool,
    readonly log: EventStore & { close(): Promise<void> },
    readonly link: NatsLink,
  ) {}

  static async open(): Promise<RootsWorld> {
    const database = await createTestDatabase();
    const pool = createPool({ url: database.urlFor('memory'), applicationName: 'spec', max: 3 });
    const url = process.env['ANTIPHON_TEST_NATS_URL'] ?? '';
    const link = await connectNats({ url, service: 'memory', logger: silentLogger });
    const folder = mkdtempSync(join(tmpdir(), 'antiphon-roots-'));
    return new RootsWorld(folder, database, pool, createPostgresEventStore(pool), link);
  }

  get rootsFile(): string {
    return join(this.folder, 'log-roots.jsonl');
  }

  /** Reads the signed records of the file. */
  roots(): SignedTreeRoot[] {
    const lines = readFileSync(this.rootsFile, 'utf8').trim().split('\n');
    return lines.map((line) => JSON.parse(line) as SignedTreeRoot);
  }

  /** Creates a signer that signs on request only. */
  createSigner({
    keys,
    owner = randomUUID(),
    rootsFile = this.rootsFile,
    ...more
  }: SignerSettings): RootSigner {
    const { pool, link } = this;
    const signer = new RootSigner({
      ...{ pool, link, owner, keys, rootsFile, everyMs: 3_600_000, ...more },
      ...{ leases: createLeaseStore(pool), clock: systemClock, logger: silentLogger },
    });
    this.signers.push(signer);
    return signer;
  }

  /** Appends one event. */
  remember(type = 'FactLearned') {
    const event = { eventId: randomUUID(), type, schemaVersion: 1, data: { a: 1 } };
    const events = [{ ...event, metadata: { correlationId: 'spec', service: 'memory' } }];
    const streams = [{ streamId: `memory-${randomUUID()}`, expectedVersion: 0, events }];
    return this.log.append({ workspace: 'default', streams });
  }

  /** Runs SQL as the owner of the database, with disabled triggers. */
  async tamper(sql: string): Promise<void> {
    const admin = new pg.Client({ connectionString: this.database.url });
    await admin.connect();
    await admin.query(`set session_replication_role = 'replica'`);
    await admin.query(sql);
    await admin.end();
  }

  async stopSigners(): Promise<void> {
    await Promise.all(this.signers.splice(0).map((signer) => signer.stop()));
  }

  async close(): Promise<void> {
    await this.stopSigners();
    await this.link.drain();
    await this.log.close();
    await this.pool.end();
    await this.database.drop();
    rmSync(this.folder, { recursive: true });
  }
}
