import type { KeyObject } from 'node:crypto';
import { mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { LOG_ROOT_SUBJECT } from '@antiphon/contracts/log';
import { readLogRoot, signContent } from '@antiphon/event-store';
import type { LeaseStore, SignedLogRoot } from '@antiphon/event-store';
import { createSerialQueue, isoTime } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';
import { Leadership } from '@antiphon/messaging';
import type { NatsLink } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import type pg from 'pg';

export interface SignRootsOptions {
  readonly pool: pg.Pool;
  readonly link: NatsLink;
  readonly leases: LeaseStore;
  /** Unique for this process. */
  readonly owner: string;
  readonly key: KeyObject;
  readonly rootsFile: string;
  readonly everyMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

const LEASE_NAME = 'log-roots';
const LEASE_MS = 30_000;

/** Appends a root as one line of JSON and syncs it to the disk. */
const appendRoot = async (file: string, root: SignedLogRoot): Promise<void> => {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const handle = await open(file, 'a', 0o644);
  try {
    await handle.appendFile(`${JSON.stringify(root)}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
};

/**
 * Signs the log's root periodically in the process that leads. Each root goes to a file and to a
 * NATS subject, so that operators can store copies out of reach of the database's administrators. A
 * root that cannot be written is retried at the next interval.
 */
export class RootSigner {
  readonly #options: SignRootsOptions;
  readonly #leadership: Leadership;
  readonly #queue = createSerialQueue();
  readonly #timer: NodeJS.Timeout;
  #last: SignedLogRoot | null = null;

  constructor(options: SignRootsOptions) {
    const { leases, owner, logger } = options;
    this.#options = options;
    this.#leadership = new Leadership({ leases, name: LEASE_NAME, owner, leaseMs: LEASE_MS, logger });
    this.#timer = setInterval(() => void this.#signOrWarn(), options.everyMs);
  }

  /** Returns the newest root that this process signed. */
  last(): SignedLogRoot | null {
    return this.#last;
  }

  /** Signs the root now. Returns null if another process leads or the log has not grown. */
  sign(): Promise<SignedLogRoot | null> {
    return this.#queue(() => this.#sign());
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#queue(() => this.#leadership.release());
  }

  async #sign(): Promise<SignedLogRoot | null> {
    const { pool, link, key, rootsFile, clock } = this.#options;
    if (!this.#leadership.isLeader() && !(await this.#leadership.campaign())) return null;
    const root = await readLogRoot(pool, isoTime(clock));
    const last = this.#last;
    if (root.position === (last?.position ?? 0) && root.epoch === (last?.epoch ?? root.epoch)) return null;
    const signed = signContent(root, key);
    await appendRoot(rootsFile, signed);
    this.#last = signed;
    if (link.isConnected()) link.connection.publish(LOG_ROOT_SUBJECT, JSON.stringify(signed));
    return signed;
  }

  async #signOrWarn(): Promise<void> {
    try {
      await this.sign();
    } catch (error) {
      this.#options.logger.warn({ err: error }, 'log root not signed');
    }
  }
}
