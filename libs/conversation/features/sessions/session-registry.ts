import { driverNotificationSubject } from '@antiphon/contracts/agent';
import { notFound } from '@antiphon/kernel';
import type { NatsLink } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import { refreshAndWake } from './local-session.js';
import type { LocalSession } from './local-session.js';
import type { LocalSessions } from './local-sessions.js';
import { emptyFold } from './session-fold.js';
import type { Claim, LeaseDeps } from './session-lease.js';
import { UPKEEP_FAILED } from './session-upkeep.js';
import type { SessionUpkeep } from './session-upkeep.js';

/** A session in this process, and who may drive it. */
export interface ClaimedSession extends LocalSession {
  readonly claim: Claim;
}

export interface RegistryDeps extends Pick<LeaseDeps, 'leases' | 'owner'> {
  readonly sessions: LocalSessions;
  readonly upkeep: SessionUpkeep;
  readonly nats: NatsLink;
  readonly logger: Logger;
  /** False once the process accepts no more turns. */
  readonly takesTurns: () => boolean;
}

/** Part of a drain that is left for recording outcomes, once running turns have had their time. */
const LAST_GRACE_MS = 1_000;
const DRAIN_POLL_MS = 20;

/** Sessions that this process knows. It drives those whose lease it holds. */
export class SessionRegistry {
  /** Epoch of a new lease: above 1 after a restore, or once leases of a higher epoch were deleted. */
  private newLeaseEpoch = 1;

  constructor(private readonly deps: RegistryDeps) {}

  /** Returns a session, and adds it if it is not here. */
  open(workspace: string, sessionId: string): LocalSession {
    return this.deps.sessions.open({ workspace, sessionId });
  }

  /**
   * Adds a session with a new id. Its lease is acquired by its first append, which fails with
   * `LOG.FENCED` if new leases have another epoch by now. With `mayAcquireOnAppend` false the lease
   * is acquired now.
   */
  async create(workspace: string, sessionId: string, mayAcquireOnAppend: boolean): Promise<ClaimedSession> {
    const { sessions } = this.deps;
    const entry = sessions.create({ workspace, sessionId }, emptyFold);
    const { actor, driver } = entry;
    // A session whose lease cannot be acquired is not added.
    const claim = mayAcquireOnAppend ? actor.acquireOnAppend(this.newLeaseEpoch) : await actor.claim();
    sessions.add(entry);
    this.newLeaseEpoch = actor.lease.held()?.epoch ?? this.newLeaseEpoch;
    return { actor, driver, claim };
  }

  /** Returns a session if it is in the cache, without reading the log. */
  find(workspace: string, sessionId: string): LocalSession | undefined {
    return this.deps.sessions.find({ workspace, sessionId });
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
      this.deps.sessions.remove(actor);
      throw notFound('SESSION.NOT_FOUND', `there is no session ${sessionId}`);
    }
    const claim = await actor.claim();
    if (!claim.owned) await actor.refresh();
    return { actor, driver, claim };
  }

  /** Removes a session that was not created in the end. */
  async discard(workspace: string, sessionId: string): Promise<void> {
    const { sessions, logger } = this.deps;
    const entry = sessions.find({ workspace, sessionId });
    sessions.remove({ workspace, sessionId });
    await entry?.actor.release().catch((err: unknown) => {
      logger.warn({ err, task: 'release session' }, UPKEEP_FAILED);
    });
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
    if (takesTurns() || driver.isWorking()) await refreshAndWake({ actor, driver });
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
    return [...this.deps.sessions.all()].flatMap((session) => {
      const state = session.actor.lease.held() ? session.actor.known()?.state : undefined;
      const agentId = state?.started?.agentId;
      return state?.open && agentId !== undefined ? [{ session, agentId }] : [];
    });
  }

  /** Returns the number of sessions whose driver is running. */
  countWorking(): number {
    return this.deps.sessions.working().length;
  }

  /**
   * Counts the turns of the sessions that this process drives: open ones, and those queued behind
   * them.
   */
  countTurns(): { readonly open: number; readonly waiting: number } {
    const count = { open: 0, waiting: 0 };
    for (const { actor } of this.deps.sessions.all()) {
      const state = actor.lease.held() ? actor.known()?.state : undefined;
      count.open += state?.open ? 1 : 0;
      count.waiting += state?.queue.length ?? 0;
    }
    return count;
  }

  /** Runs one round of upkeep. Its errors are logged. */
  runUpkeep(): Promise<void> {
    return this.deps.upkeep.run();
  }

  /** Waits for running turns, stops the rest when the time is over, and releases every lease. */
  async drain(withinMs: number): Promise<void> {
    const { sessions, leases, owner, logger } = this.deps;
    await this.waitUntilIdle(withinMs - LAST_GRACE_MS);
    await Promise.all(sessions.working().map(({ driver }) => driver.stop(LAST_GRACE_MS)));
    for (const { actor } of sessions.all()) actor.lease.markLost();
    await leases.releaseOwner(owner).catch((err: unknown) => {
      logger.warn({ err, task: 'release leases' }, UPKEEP_FAILED);
    });
    sessions.clear();
  }

  /** Resolves when no driver is running, or after `withinMs`. */
  async waitUntilIdle(withinMs: number): Promise<void> {
    const deadline = performance.now() + withinMs;
    while (this.countWorking() > 0 && performance.now() < deadline)
      await new Promise((resolve) => setTimeout(resolve, DRAIN_POLL_MS));
  }
}
