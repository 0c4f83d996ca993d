import { LOG_ROOT_SUBJECT } from '@antiphon/contracts/log';
import { inTransaction } from '@antiphon/database';
import {
  appendRoots,
  findFirstUse,
  growTree,
  hashRecord,
  LogTree,
  readLogState,
  signContent,
  storeRoot,
} from '@antiphon/event-store';
import type {
  LeaseStore,
  LogState,
  SavedTree,
  SignedTreeRoot,
  SigningKeys,
  TreeRoot,
} from '@antiphon/event-store';
import { createSerialQueue, isAppError, isoTime, transient, withTimeout } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';
import { Leadership } from '@antiphon/messaging';
import type { NatsLink } from '@antiphon/messaging';
import { defineCounter } from '@antiphon/observability';
import type { Logger } from '@antiphon/observability';
import type pg from 'pg';
import { loadRootHistory } from './root-history.js';
import type { RootHistory } from './root-history.js';

export interface SignRootsOptions {
  readonly pool: pg.Pool;
  readonly link: NatsLink;
  readonly leases: LeaseStore;
  /** Unique for this process. */
  readonly owner: string;
  readonly keys: SigningKeys;
  readonly rootsFile: string;
  readonly everyMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Maximum number of old events that each run compares with a signed root again. */
  readonly recheckEvents?: number;
}

const LEASE_NAME = 'log-roots';
const LEASE_MS = 30_000;
const RECHECK_EVENTS = 200_000;
/** Records in memory, from which old events are compared once the events before are archived. */
const KEPT_RECORDS = 1_000;
/** Timeout for the last root of a process that stops. */
const STOP_MS = 5_000;

const refusals = defineCounter('antiphon_log_root_refusals', 'Log roots that the signer refused to sign');

/** Comparison of old events with a signed root, in portions. */
interface Recheck {
  readonly tree: LogTree;
  readonly target: SignedTreeRoot;
}

/**
 * Reads the end of the log. The first root ends before the first event of a log in use, which may
 * be appended after the roots were loaded.
 */
const readFirstState = async (client: pg.ClientBase, { newest, old }: RootHistory): Promise<LogState> => {
  const state = await readLogState(client);
  const early = (newest ?? old) ? null : await findFirstUse(client, state.position);
  return early === null ? state : { ...state, position: early.position - 1 };
};

const emptyTree = (base: number): SavedTree => ({ base, position: base, peaks: [] });

/**
 * Signs the log's root periodically in the process that leads. Each root covers every event before
 * it and carries the hash of the record before, and costs as much as the events since then. The
 * signer refuses to sign over a change of what its last root covered. Roots go to a file, a table
 * and a NATS subject.
 */
export class RootSigner {
  readonly #options: SignRootsOptions;
  readonly #leadership: Leadership;
  readonly #queue = createSerialQueue();
  readonly #timer: NodeJS.Timeout;
  #history: RootHistory | null = null;
  #recheck: Recheck | null = null;
  #refusal: string | null = null;

  constructor(options: SignRootsOptions) {
    const { leases, owner, logger } = options;
    this.#options = options;
    this.#leadership = new Leadership({ leases, name: LEASE_NAME, owner, leaseMs: LEASE_MS, logger });
    this.#timer = setInterval(() => void this.signOrWarn(), options.everyMs);
  }

  /** Returns the newest root that this process knows. */
  last(): SignedTreeRoot | null {
    return this.#history?.newest ?? null;
  }

  /** Returns the reason for which the log is not signed; null while it is. */
  refusal(): string | null {
    return this.#refusal;
  }

  /**
   * Signs the root now. Returns null if another process leads, the log has not grown, or the signer
   * refuses.
   */
  sign(): Promise<SignedTreeRoot | null> {
    return this.#queue(() =>
      this.#sign().catch((error: unknown) => {
        // Another program has signed the next record, such as `antiphon roots adopt`.
        if (isAppError(error) && error.code === 'LOG.ROOT_FORKED') return this.#sign();
        throw error;
      }),
    );
  }

  /** Signs the root now and logs a failure. */
  async signOrWarn(): Promise<void> {
    try {
      await this.sign();
    } catch (error) {
      if (isAppError(error) && error.code === 'LOG.ROOT_FORKED') this.#refuse(error.message, 0);
      else this.#options.logger.warn({ err: error }, 'log root not signed');
    }
  }

  /** Signs a last root, if this process leads, and releases the lease. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    if (this.#leadership.isLeader())
      await withTimeout(this.signOrWarn(), STOP_MS, () =>
        transient('LOG.ROOT_LATE', `the last root was not signed within ${STOP_MS} ms`),
      ).catch((error: unknown) => this.#options.logger.warn({ err: error }, 'log root not signed'));
    await this.#leadership.release();
  }

  async #sign(): Promise<SignedTreeRoot | null> {
    if (!this.#leadership.isLeader()) {
      // Another process may have signed since.
      this.#history = null;
      this.#recheck = null;
      if (!(await this.#leadership.campaign())) return null;
    }
    this.#history ??= await this.#load();
    if (this.#history === null) return null;
    const root = await this.#readRoot(this.#history);
    if (root === null) return null;
    const signed = signContent(root, this.#options.keys.privateKey);
    await this.#publish(signed, this.#history);
    return signed;
  }

  async #load(): Promise<RootHistory | null> {
    const found = await loadRootHistory(this.#options);
    return 'reason' in found ? this.#refuse(found.reason, found.position) : found;
  }

  #refuse(reason: string, position: number): null {
    refusals.add(1);
    if (this.#refusal !== reason)
      this.#options.logger.error({ alert: true, reason, position }, 'log root refused');
    this.#refusal = reason;
    return null;
  }

  /** Reads the next root on one snapshot; null if there is nothing to sign, or it must not be. */
  #readRoot(history: RootHistory): Promise<TreeRoot | null> {
    // Before the snapshot: every event that the root does not cover is recorded later.
    const at = isoTime(this.#options.clock);
    return inTransaction(this.#options.pool, async (client) => {
      await client.query('set transaction isolation level repeatable read, read only');
      const state = await readFirstState(client, history);
      const reason = this.#findOtherHistory(history, state);
      if (reason !== null) return this.#refuse(reason, state.position);
      const tree = new LogTree(this.#selectStart(history, state));
      const covered = history.newest ? [history.newest] : [];
      const broken =
        (await growTree(client, tree, state.position, covered)) ??
        (await this.#recheckOld(client, history, state));
      if (broken) return this.#refuse(broken.reason, broken.position);
      this.#refusal = null;
      return history.newest?.position === state.position ? null : this.#toRoot(tree, history, state, at);
    });
  }

  #findOtherHistory({ newest, old }: RootHistory, state: LogState): string | null {
    const last = newest ?? old;
    if (last === null) return null;
    if (last.epoch !== state.epoch)
      return `the log is of epoch ${state.epoch}; no signed record continues epoch ${last.epoch}`;
    return state.position < last.position
      ? `the log ends at position ${state.position}; a root was signed at position ${last.position}`
      : null;
  }

  /** Returns the tree from which events are read: the root before the newest, to compare that one. */
  #selectStart({ newest, before }: RootHistory, state: LogState): SavedTree {
    if (newest === null) return emptyTree(state.base);
    const isReadable = before !== null && before.base === newest.base && before.position >= state.base;
    return isReadable && before.position <= newest.position ? before : newest;
  }

  /**
   * Compares the next portion of old events with a signed root. A log of few events is compared
   * whole each time.
   */
  async #recheckOld(client: pg.ClientBase, { newest, stored }: RootHistory, { base }: LogState) {
    if (newest === null) return null;
    if (this.#recheck === null) {
      const from =
        base <= newest.base ? emptyTree(newest.base) : stored.find(({ position }) => position >= base);
      if (from === undefined) return null;
      this.#recheck = { tree: new LogTree(from), target: newest };
    }
    const { tree, target } = this.#recheck;
    const end = Math.min(target.position, tree.position + (this.#options.recheckEvents ?? RECHECK_EVENTS));
    const broken = await growTree(client, tree, end, [target]);
    if (broken || end === target.position) this.#recheck = null;
    return broken;
  }

  #toRoot(tree: LogTree, { newest, old }: RootHistory, { epoch }: LogState, at: string): TreeRoot {
    const last = newest ?? old;
    return {
      ...tree.save(),
      ...{ format: 2, kind: 'root', number: (newest?.number ?? 0) + 1, epoch, root: tree.hash() },
      previous: last && hashRecord(last),
      at,
      ...{ continues: null, reason: null },
    };
  }

  async #publish(signed: SignedTreeRoot, history: RootHistory): Promise<void> {
    const { pool, link, rootsFile } = this.#options;
    // Read again after a failure in between: then one place lacks the root.
    this.#history = null;
    await storeRoot(pool, signed);
    await appendRoots(rootsFile, [signed]);
    const stored = [...history.stored.slice(1 - KEPT_RECORDS), signed];
    this.#history = { ...history, newest: signed, before: history.newest, stored };
    if (link.isConnected()) link.connection.publish(LOG_ROOT_SUBJECT, JSON.stringify(signed));
  }
}
