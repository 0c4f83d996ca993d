import { driverNotificationSubject } from '@antiphon/contracts/agent';
import { notFound } from '@antiphon/kernel';
import { SNAPSHOT_EVERY } from './session-log.js';
import type { SessionLog } from './session-log.js';
import type { SessionFold } from './session-fold.js';
import type { NatsLink } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import type { ReadVersions } from './stream-versions.js';
import type { SessionDriver } from '../turns/session-driver.js';
import type { Claim, LeaseDeps } from './session-lease.js';
import type { SessionActor } from './session-actor.js';

/** A session in this process. */
export interface LocalSession {
  readonly actor: SessionActor;
  readonly driver: SessionDriver;
}

/** A session in this process, and who may drive it. */
export interface ClaimedSession extends LocalSession {
  readonly claim: Claim;
}

/** The sessions that this process knows; those it drives, it holds the lease of. */
export interface SessionRegistry {
  /** `known`: the fold of a session that is just being made. */
  of(workspace: string, sessionId: string, known?: SessionFold): LocalSession;
  /** A session that this process has at hand, as far as it knows it. */
  atHand(workspace: string, sessionId: string): LocalSession | undefined;
  /** A session that exists, read up to now and, if nobody else drives it, claimed. Throws `SESSION.NOT_FOUND`. */
  requireSession(workspace: string, sessionId: string): Promise<ClaimedSession>;
  /** A session that came to nothing after all. */
  forget(workspace: string, sessionId: string): Promise<void>;
  /** Looks at a session that may have work, and drives it unless another process does. */
  wake(workspace: string, sessionId: string): Promise<void>;
  /** Wakes the session's driver here, or notifies the process that owns the session. */
  wakeDriver(session: ClaimedSession): void;
  /** Sessions at work. */
  working(): number;
  /** Turns of the sessions that this process drives: open ones, and those that wait behind them. */
  turns(): { readonly open: number; readonly waiting: number };
  /** One round of upkeep; its errors are logged. */
  keepUp(): Promise<void>;
  /** Lets what is at work come to its end within the time, stops the rest, and gives every lease back. */
  drain(withinMs: number): Promise<void>;
}

export interface RegistryDeps extends LeaseDeps {
  /** Creates a session with its driver. `known`: the fold of a session that is just being created. */
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
    /** Time between two polls of the versions of our sessions, ms: a lost notification costs this much. */
    readonly lookMs: number;
  };
}

interface Entry extends LocalSession {
  usedAt: number;
  /** Version of the last snapshot that this process knows to be there. */
  snapshotAt: number | null;
}

/** Of `drain`: what is left of it once running turns have had their time. */
const LAST_GRACE_MS = 1_000;

const countTurns = (sessions: readonly LocalSession[]): { open: number; waiting: number } => {
  const count = { open: 0, waiting: 0 };
  for (const { actor } of sessions) {
    const state = actor.lease.held() ? actor.known()?.state : undefined;
    count.open += state?.open ? 1 : 0;
    count.waiting += state?.queue.length ?? 0;
  }
  return count;
};

const keyOf = (workspace: string, sessionId: string): string => `${workspace}/${sessionId}`;

export const createSessionRegistry = (services: RegistryDeps, maxLanes: number): SessionRegistry => {
  const { leases, log, logger, nats, owner, times } = services;
  /** Least recently used first. */
  const entries = new Map<string, Entry>();
  let renewedAt = 0;
  let lookedAt = 0;

  const of: SessionRegistry['of'] = (workspace, sessionId, known) => {
    const key = keyOf(workspace, sessionId);
    const entry = entries.get(key) ?? create(workspace, sessionId, known ?? null);
    entries.delete(key);
    entries.set(key, entry);
    entry.usedAt = performance.now();
    return entry;
  };
  const create = (workspace: string, sessionId: string, known: SessionFold | null): Entry => {
    const { actor, driver } = services.createSession(workspace, sessionId, known);
    return { actor, driver, usedAt: 0, snapshotAt: known && 0 };
  };

  const renew = async (): Promise<void> => {
    if (performance.now() - renewedAt < times.leaseMs / 3) return;
    renewedAt = performance.now();
    const held = [...entries.values()].flatMap(({ actor }) => {
      const lease = actor.lease.held();
      return lease ? [{ actor, lease }] : [];
    });
    const askedAt = performance.now();
    const gone = new Set(
      await leases.renew(
        held.map(({ lease }) => lease),
        times.leaseMs,
      ),
    );
    for (const { actor, lease } of held) {
      // While this was on its way the actor may have come to another lease.
      if (actor.lease.held() !== lease) continue;
      if (gone.has(lease.name)) actor.lease.lost();
      else actor.lease.confirmed(askedAt);
    }
  };
  const tidy = async (): Promise<void> => {
    const now = performance.now();
    let surplus = entries.size - maxLanes;
    for (const [key, entry] of entries) {
      const { actor, driver, usedAt } = entry;
      if (driver.isWorking()) {
        entry.usedAt = now;
        continue;
      }
      const idle = now - usedAt > times.idleMs;
      if (!idle && surplus <= 0) continue;
      if (surplus-- > 0) entries.delete(key);
      if (actor.lease.held()) await actor.release();
    }
  };
  /** What others appended to our sessions, if their hint was lost. */
  const lookAround = async (): Promise<void> => {
    if (performance.now() - lookedAt < times.lookMs) return;
    lookedAt = performance.now();
    const ours = [...entries.values()].filter(({ actor }) => actor.known() && actor.lease.held());
    if (ours.length === 0) return;
    const versions = await services.readVersions(ours.map(({ actor }) => actor));
    const moved = ours.filter(({ actor }, index) => actor.fold().version < (versions[index] ?? 0));
    await Promise.all(moved.map(lookAt));
  };
  const lookAt = async ({ actor, driver }: LocalSession): Promise<void> => {
    await actor.refresh();
    driver.wake();
  };
  const snapshot = async (): Promise<void> => {
    for (const entry of entries.values()) {
      const { actor } = entry;
      const fold = actor.known();
      if (!fold) continue;
      // A fold that was loaded has left its snapshot then, if it was worth one.
      entry.snapshotAt ??= fold.version;
      if (fold.version - entry.snapshotAt < SNAPSHOT_EVERY) continue;
      await log.snapshot(actor.workspace, actor.sessionId, fold);
      entry.snapshotAt = fold.version;
    }
  };
  const attempt = async (what: string, work: () => Promise<void>): Promise<void> =>
    work().catch((error: unknown) =>
      logger.warn({ err: error }, `sessions: ${what} failed; it will be tried again`),
    );

  const working = (): Entry[] => [...entries.values()].filter(({ driver }) => driver.isWorking());
  const untilIdle = async (deadline: number): Promise<void> => {
    while (working().length > 0 && performance.now() < deadline)
      await new Promise((resolve) => setTimeout(resolve, 20));
  };

  const requireSession: SessionRegistry['requireSession'] = async (workspace, sessionId) => {
    const { actor, driver } = of(workspace, sessionId);
    // A lease row stays for ever: none is made for an id that nothing is known of.
    if (!actor.known()) await actor.refresh();
    if (actor.fold().version === 0) {
      entries.delete(keyOf(workspace, sessionId));
      throw notFound('SESSION.NOT_FOUND', `there is no session ${sessionId}`);
    }
    const claim = await actor.claim();
    if (!claim.owned) await actor.refresh();
    return { actor, driver, claim };
  };

  return {
    of,
    atHand: (workspace, sessionId) => entries.get(keyOf(workspace, sessionId)),
    requireSession,
    forget: async (workspace, sessionId) => {
      const entry = entries.get(keyOf(workspace, sessionId));
      entries.delete(keyOf(workspace, sessionId));
      if (entry) await attempt('giving a session back', () => entry.actor.release());
    },
    wake: async (workspace, sessionId) => {
      const { actor, driver } = of(workspace, sessionId);
      // A process that stops takes nothing over, or what it has given back would be its own again until it lapses.
      if (!services.takesTurns() && !actor.lease.held()) return;
      if (!(await actor.claim()).owned) return;
      if (services.takesTurns() || driver.isWorking()) await lookAt({ actor, driver });
      else await actor.release();
    },
    wakeDriver: ({ actor, driver, claim }) => {
      const { workspace, sessionId } = actor;
      if (actor.lease.held()) driver.wake();
      else if (!claim.owned && nats.isConnected())
        nats.connection.publish(
          driverNotificationSubject(claim.owner),
          JSON.stringify({ workspace, sessionId }),
        );
    },
    working: () => working().length,
    turns: () => countTurns([...entries.values()]),
    keepUp: async () => {
      await attempt('renewing leases', renew);
      await attempt('looking at event streams', lookAround);
      await attempt('giving idle sessions back', tidy);
      await attempt('keeping snapshots', snapshot);
    },
    drain: async (withinMs) => {
      await untilIdle(performance.now() + withinMs - LAST_GRACE_MS);
      await Promise.all(working().map(({ driver }) => driver.end(LAST_GRACE_MS)));
      for (const { actor } of entries.values()) actor.lease.lost();
      await attempt('giving leases back', async () => void (await leases.releaseOwner(owner)));
      entries.clear();
    },
  };
};
