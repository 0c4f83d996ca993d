import type { Logger } from '@antiphon/observability';
import { refreshAndWake } from './local-session.js';
import type { LocalSessions, SessionEntry } from './local-sessions.js';
import type { LeaseDeps } from './session-lease.js';
import { SNAPSHOT_EVERY } from './session-log.js';
import type { SessionLog } from './session-log.js';
import type { ReadVersions } from './session-queries.js';

/** Name of the warning of a failed task. */
export const UPKEEP_FAILED = 'session upkeep failed';

export interface SessionUpkeepDeps {
  readonly sessions: LocalSessions;
  readonly leases: LeaseDeps['leases'];
  readonly log: Pick<SessionLog, 'snapshot'>;
  readonly readVersions: ReadVersions;
  readonly logger: Logger;
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

/** Renews the leases of the sessions of this process, and releases those that are idle. */
export class SessionUpkeep {
  private renewedAt = 0;
  private polledAt = 0;

  constructor(private readonly deps: SessionUpkeepDeps) {}

  /** Runs one round. Its errors are logged. */
  async run(): Promise<void> {
    await this.runLogged('renew leases', () => this.renewLeases());
    await this.runLogged('poll versions', () => this.pollVersions());
    await this.runLogged('release idle sessions', () => this.releaseIdle());
    await this.runLogged('write snapshots', () => this.writeSnapshots());
  }

  private async renewLeases(): Promise<void> {
    const { leases, times } = this.deps;
    if (performance.now() - this.renewedAt < times.leaseMs / 3) return;
    this.renewedAt = performance.now();
    const held = [...this.deps.sessions.all()].flatMap(({ actor }) => {
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
    const ours = [...this.deps.sessions.all()].filter(({ actor }) => actor.known() && actor.lease.held());
    if (ours.length === 0) return;
    const versions = await readVersions(ours.map(({ actor }) => actor));
    const changed = ours.filter(({ actor }, index) => actor.fold().version < (versions[index] ?? 0));
    await Promise.all(changed.map(refreshAndWake));
  }

  /**
   * Releases the leases of idle sessions together: one after another they would fall behind new
   * sessions. A session leaves the cache after its release, so that it has one actor at any time.
   */
  private async releaseIdle(): Promise<void> {
    const now = performance.now();
    const { sessions, times } = this.deps;
    let surplus = sessions.surplus();
    const idle: SessionEntry[] = [];
    for (const entry of sessions.all()) {
      if (entry.driver.isWorking()) entry.usedAt = now;
      else if (surplus-- > 0 || now - entry.usedAt > times.idleMs) idle.push(entry);
    }
    const held = idle.filter(({ actor }) => actor.lease.held());
    await Promise.all(held.map(({ actor }) => actor.release()));
    for (const { actor, driver, usedAt } of idle) {
      const isUnused = usedAt <= now && !driver.isWorking() && !actor.lease.held();
      if (isUnused && sessions.surplus() > 0) sessions.remove(actor);
    }
  }

  private async writeSnapshots(): Promise<void> {
    for (const entry of this.deps.sessions.all()) {
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

  private async runLogged(task: string, work: () => Promise<void>): Promise<void> {
    return work().catch((error: unknown) => this.deps.logger.warn({ err: error, task }, UPKEEP_FAILED));
  }
}
