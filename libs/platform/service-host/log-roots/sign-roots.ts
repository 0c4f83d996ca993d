import type { KeyObject } from 'node:crypto';
import { LOG_ROOT_SUBJECT } from '@antiphon/contracts/log';
import { readLogRoot, signContent } from '@antiphon/event-store';
import type { LeaseStore, SignedLogRoot } from '@antiphon/event-store';
import type { Clock } from '@antiphon/kernel';
import { isoTime } from '@antiphon/kernel';
import { Leadership } from '@antiphon/messaging';
import type { NatsLink } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import type pg from 'pg';
import { appendRoot } from './root-file.js';

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

export interface RootSigner {
  /** The newest root that this process signed. */
  last(): SignedLogRoot | null;
  /** Signs now, if this process leads and the log has grown since; answers the root, or null. */
  sign(): Promise<SignedLogRoot | null>;
  stop(): Promise<void>;
}

const LEASE_NAME = 'log-roots';
const LEASE_MS = 30_000;

/**
 * Signs the log's root every so often, in whichever process leads: into a file and on a subject, so that copies can be
 * kept where nobody who can change the log can change them. A root that cannot be written is tried again at the next turn.
 */
export const startRootSigner = (options: SignRootsOptions): RootSigner => {
  const { pool, link, leases, owner, key, rootsFile, everyMs, clock, logger } = options;
  const leadership = new Leadership({ leases, name: LEASE_NAME, owner, leaseMs: LEASE_MS, logger });
  let last: SignedLogRoot | null = null;
  let working: Promise<unknown> = Promise.resolve();

  const signOnce = async (): Promise<SignedLogRoot | null> => {
    if (!leadership.isLeader() && !(await leadership.campaign())) return null;
    const root = await readLogRoot(pool, isoTime(clock));
    if (root.position === (last?.position ?? 0) && root.epoch === (last?.epoch ?? root.epoch)) return null;
    const signed = signContent(root, key);
    await appendRoot(rootsFile, signed);
    last = signed;
    if (link.isConnected()) link.connection.publish(LOG_ROOT_SUBJECT, JSON.stringify(signed));
    return signed;
  };
  const sign = (): Promise<SignedLogRoot | null> => {
    const mine = working.then(signOnce);
    working = mine.catch(() => undefined);
    return mine;
  };
  const signOrWarn = (): void =>
    void sign().catch((error: unknown) => logger.warn({ err: error }, "the log's root could not be signed"));

  const timer = setInterval(signOrWarn, everyMs);
  return {
    last: () => last,
    sign,
    stop: async () => {
      clearInterval(timer);
      await working;
      await leadership.release();
    },
  };
};
