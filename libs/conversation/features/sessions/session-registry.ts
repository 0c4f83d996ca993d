import { driverNotificationSubject } from '@antiphon/contracts/agent';
import type { SessionState } from '@antiphon/conversation-domain';
import { notFound } from '@antiphon/kernel';
import type { NatsLink } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import type { SessionActor } from './session-actor.js';
import { emptyFold } from './session-fold.js';
import type { SessionFold } from './session-fold.js';
import type { Claim, LeaseDeps } from './session-lease.js';
import { SNAPSHOT_EVERY } from './session-log.js';
import type { SessionLog } from './session-log.js';
import type { ReadVersions } from './session-queries.js';
import type { Decision } from './session-stream.js';

/** A turn that is about to be requested. */
export interface UpcomingTurn {
  readonly turnId: string;
  readonly content: string;
  readonly agentId: string;
  readonly sessionKey: string;
}

/** Runs the turns of one session, as long as this process holds its lease. */
export interface SessionDriver {
  /** Starts to drive, unless the driver is running. */
  wake(): void;
  /** Requests the context of a turn early. A failure costs only the head start. */
  prefetchContext(turn: UpcomingTurn): void;
  /**
   * Returns the reservation to ask for in the commit after which the session has this state.
   * Nothing if its bound is not known before the context.
   */
  reserveInCommit(state: SessionState): Pick<Decision, 'extension'>;
  isWorking(): boolean;
  /**
   * Stops the driver within `graceMs`, in which outcomes are recorded. Resolves when it has
   * stopped.
   */
  stop(graceMs: number): Promise<void>;
}

/** A session in this process. */
export interface LocalSession {
  readonly actor: SessionActor;
  readonly driver: SessionDriver;
}

/** A session in this process, and who may drive it. */
export interface ClaimedSession extends LocalSession {
  readonly claim: Claim;
}

export interface RegistryDeps extends LeaseDeps {
  /** Creates a session with its driver. `known` is the fold of a session that is being created. */
  readonly createSession: (workspace: string, sessionId: string, known: SessionFold | null) => LocalSession;
  readonly log: Pick<SessionLog, 'snapshot'>;
  readonly readVersions: ReadVersions;
  readonly nats: NatsLink;
  readonly logger: Logger;
  /** False once the process accepts no more turns. */
  readonly takesTurns: () => boolean;
  readonly times: {
    readonly leaseMs: number;
    /** Time that an idle session stays with this process, ms. */
    readonly idleMs: number;
    /**
     * Time between two polls of the versions of our sessions, ms: a lost notification costs this
     * much.
     */
    readonly pollMs: number;
  };
}

interface Entry extends LocalSession {
  usedAt: number;
  /** Version of the last snapshot that this process knows of. */
  snapshotAt: number | null;
}

/** Maximum number of sessions in the registry. */
const MAX_SESSIONS = 2_000;
/** Part of a drain that is left for recording outcomes, once running turns have had their time. */
const LAST_GRACE_MS = 1_000;
const DRAIN_POLL_MS = 20;

const keyOf = (workspace: string, sessionId: string): string => `${workspace}/${sessionId}`;

/** Cache of the sessions that this process knows. It drives those whose lease it holds. */
export class SessionRegistry {
  /** Least recently used first. */
  private readonly entries = new Map<string, Entry>();
  /** Epoch of a new lease: above 1 after a restore, or once leases of a higher epoch were deleted. */
  private newLeaseEpoch = 1;
  private renewedAt = 0;
  private polledAt = 0;

  constructor(
    private readonly deps: RegistryDeps,
    private readonly maxSessions = MAX_SESSIONS,
  ) {}

  /** Returns a session, and adds it if it is not here. */
  open(workspace: string, sessionId: string): LocalSession {
    const key = keyOf(workspace, sessionId);
    const entry = this.entries.get(key) ?? this.createEntry(workspace, sessionId, null);
    this.entries.delete(key);
    this.entries.set(key, entry);
    entry.usedAt = performance.now();
    return entry;
  }

  /**
   * Adds a session with a new id. Its lease is acquired by its first append, which fails with
   * `LOG.FENCED` if new leases have another epoch by now. With `mayAcquireOnAppend` false the lease
   * is acquired now.
   */
  async create(workspace: string, sessionId: string, mayAcquireOnAppend: boolean): Promise<ClaimedSession> {
    const entry = this.createEntry(workspace, sessionId, emptyFold);
    const { actor, driver } = entry;
    // A session whose lease cannot be acquired is not added.
    const claim = mayAcquireOnAppend ? actor.acquireOnAppend(this.newLeaseEpoch) : await actor.claim();
    this.entries.set(keyOf(workspace, sessionId), entry);
    entry.usedAt = performance.now();
    this.newLeaseEpoch = actor.lease.held()?.epoch ?? this.newLeaseEpoch;
    return { actor, driver, claim };
  }

  /** Returns a session if it is in the cache, without reading the log. */
  find(workspace: string, sessionId: string): LocalSession | undefined {
    return this.entries.get(keyOf(workspace, sessionId));
  }

  /**
   * Returns an existing session, read up to now, and claims it unless another process drives it.
   * Throws `SESSION.NOT_FOUND`.
   */
  async requireSession(workspace: string, sessionId: string): Promise<ClaimedSession> {
    const { actor, driver } = this.open(workspace, sessionId);
    // A lease row is never deleted: none is created for the id of an unknown session.
    // Version 0 may be a session that is being created here: its commit may be in the log already.
    if (!actor.known() || actor.fold().version === 0) await actor.refresh();
    if (actor.fold().version === 0) {
      this.entries.delete(keyOf(workspace, sessionId));
      throw notFound('SESSION.NOT_FOUND', `there is no session ${sessionId}`);
    }
    const claim = await actor.claim();
    if (!claim.owned) await actor.refresh();
    return { actor, driver, claim };
  }

  /** Removes a session that was not created in the end. */
  async discard(workspace: string, sessionId: string): Promise<void> {
    const key = keyOf(workspace, sessionId);
    const entry = this.entries.get(key);
    this.entries.delete(key);
    if (entry) await this.runLogged('release session', () => entry.actor.release());
  }

  /**
   * Claims a session that may have open turns and wakes its driver, unless another process owns it.
   */
  async claimAndWake(workspace: string, sessionId: string): Promise<void> {
    const { actor, driver } = this.open(workspace, sessionId);
    const { takesTurns } = this.deps;
    // A stopping process claims nothing, or it would own again what it has just released.
    if (!takesTurns() && !actor.lease.held()) return;
    if (!(await actor.claim()).owned) return;
    if (takesTurns() || driver.isWorking()) await this.refreshAndWake({ actor, driver });
    else await actor.release();
  }

  /** Wakes the session's driver here, or notifies the process that owns the session. */
  wakeDriver({ actor, driver, claim }: ClaimedSession): void {
    const { nats } = this.deps;
    const { workspace, sessionId } = actor;
    if (actor.lease.held()) driver.wake();
    else if (!claim.owned && nats.isConnected())
      nats.connection.publish(
        driverNotificationSubject(claim.owner),
        JSON.stringify({ workspace, sessionId }),
      );
  }

  /** Returns the sessions that this process holds, with an open turn. */
  openSessions(): { readonly session: LocalSession; readonly agentId: string }[] {
    return [...this.entries.values()].flatMap((session) => {
      const state = session.actor.lease.held() ? session.actor.known()?.state : undefined;
      const agentId = state?.started?.agentId;
      return state?.open && agentId !== undefined ? [{ session, agentId }] : [];
    });
  }

  /** Returns the number of sessions whose driver is running. */
  countWorking(): number {
    return this.workingEntries().length;
  }

  /**
   * Counts the turns of the sessions that this process drives: open ones, and those queued behind
   * them.
   */
  countTurns(): { readonly open: number; readonly waiting: number } {
    const count = { open: 0, waiting: 0 };
    for (const { actor } of this.entries.values()) {
      const state = actor.lease.held() ? actor.known()?.state : undefined;
      count.open += state?.open ? 1 : 0;
      count.waiting += state?.queue.length ?? 0;
    }
    return count;
  }

  /** Runs one round of upkeep. Its errors are logged. */
  async runUpkeep(): Promise<void> {
    await this.runLogged('renew leases', () => this.renewLeases());
    await this.runLogged('poll versions', () => this.pollVersions());
    await this.runLogged('release idle sessions', () => this.releaseIdle());
    await this.runLogged('write snapshots', () => this.writeSnapshots());
  }

  /** Waits for running turns, stops the rest when the time is over, and releases every lease. */
  async drain(withinMs: number): Promise<void> {
    await this.waitUntilIdle(withinMs - LAST_GRACE_MS);
    await Promise.all(this.workingEntries().map(({ driver }) => driver.stop(LAST_GRACE_MS)));
    for (const { actor } of this.entries.values()) actor.lease.markLost();
    const { leases, owner } = this.deps;
    await this.runLogged('release leases', async () => void (await leases.releaseOwner(owner)));
    this.entries.clear();
  }

  /** Resolves when no driver is running, or after `withinMs`. */
  async waitUntilIdle(withinMs: number): Promise<void> {
    const deadline = performance.now() + withinMs;
    while (this.countWorking() > 0 && performance.now() < deadline)
      await new Promise((resolve) => setTimeout(resolve, DRAIN_POLL_MS));
  }

  private createEntry(workspace: string, sessionId: string, known: SessionFold | null): Entry {
    const { actor, driver } = this.deps.createSession(workspace, sessionId, known);
    return { actor, driver, usedAt: 0, snapshotAt: known && 0 };
  }

  private workingEntries(): Entry[] {
    return [...this.entries.values()].filter(({ driver }) => driver.isWorking());
  }

  private async renewLeases(): Promise<void> {
    const { leases, times } = this.deps;
    if (performance.now() - this.renewedAt < times.leaseMs / 3) return;
    this.renewedAt = performance.now();
    const held = [...this.entries.values()].flatMap(({ actor }) => {
      const lease = actor.lease.renewable();
      return lease ? [{ actor, lease }] : [];
    });
    const askedAt = performance.now();
    const renewing = held.map(({ lease }) => lease);
    const lost = new Set(await leases.renew(renewing, times.leaseMs));
    for (const { actor, lease } of held) {
      // The session may have got another lease during the request.
      if (actor.lease.held() !== lease) continue;
      if (lost.has(lease.name)) actor.lease.markLost();
      else actor.lease.markConfirmed(askedAt);
    }
  }

  /** Reads what other processes appended to our sessions, in case their notification was lost. */
  private async pollVersions(): Promise<void> {
    const { times, readVersions } = this.deps;
    if (performance.now() - this.polledAt < times.pollMs) return;
    this.polledAt = performance.now();
    const ours = [...this.entries.values()].filter(({ actor }) => actor.known() && actor.lease.held());
    if (ours.length === 0) return;
    const versions = await readVersions(ours.map(({ actor }) => actor));
    const changed = ours.filter(({ actor }, index) => actor.fold().version < (versions[index] ?? 0));
    await Promise.all(changed.map((session) => this.refreshAndWake(session)));
  }

  /**
   * Releases the leases of idle sessions together: one after another they would fall behind new
   * sessions. A session leaves the cache after its release, so that it has one actor at any time.
   */
  private async releaseIdle(): Promise<void> {
    const now = performance.now();
    let surplus = this.entries.size - this.maxSessions;
    const idle: [string, Entry][] = [];
    for (const [key, entry] of this.entries) {
      if (entry.driver.isWorking()) entry.usedAt = now;
      else if (surplus-- > 0 || now - entry.usedAt > this.deps.times.idleMs) idle.push([key, entry]);
    }
    const held = idle.filter(([, { actor }]) => actor.lease.held());
    await Promise.all(held.map(([, { actor }]) => actor.release()));
    for (const [key, { actor, driver, usedAt }] of idle) {
      const isUnused = usedAt <= now && !driver.isWorking() && !actor.lease.held();
      if (isUnused && this.entries.size > this.maxSessions) this.entries.delete(key);
    }
  }

  private async writeSnapshots(): Promise<void> {
    for (const entry of this.entries.values()) {
      const { actor } = entry;
      const fold = actor.known();
      if (!fold) continue;
      // Loading a fold has written its snapshot, if it was long enough.
      entry.snapshotAt ??= fold.version;
      if (fold.version - entry.snapshotAt < SNAPSHOT_EVERY) continue;
      await this.deps.log.snapshot(actor.workspace, actor.sessionId, fold);
      entry.snapshotAt = fold.version;
    }
  }

  private async refreshAndWake({ actor, driver }: LocalSession): Promise<void> {
    await actor.refresh();
    driver.wake();
  }

  private async runLogged(task: string, work: () => Promise<void>): Promise<void> {
    return work().catch((error: unknown) =>
      this.deps.logger.warn({ err: error, task }, 'session upkeep failed'),
    );
  }
}
