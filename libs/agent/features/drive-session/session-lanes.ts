import { driverNotificationSubject } from '@antiphon/contracts/agent';
import { notFound } from '@antiphon/kernel';
import { SNAPSHOT_EVERY } from '../session-log/session-log.js';
import type { SessionLog } from '../session-log/session-log.js';
import type { SessionFold } from '../session-log/session-fold.js';
import type { NatsLink } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import type { ReadVersions } from '../session-log/stream-versions.js';
import type { SessionDriver } from './session-driver.js';
import type { Claim, LeaseDeps } from './lane-lease.js';
import type { SessionLane } from './session-lane.js';

/** A session in this process. */
export interface LocalSession {
  readonly lane: SessionLane;
  readonly driver: SessionDriver;
}

/** The sessions that this process knows; those it drives, it holds the lease of. */
export interface SessionLanes {
  /** `known`: the fold of a session that is just being made. */
  of(workspace: string, sessionId: string, known?: SessionFold): LocalSession;
  /** A session that this process has at hand, as far as it knows it. */
  atHand(workspace: string, sessionId: string): LocalSession | undefined;
  /** A session that exists, read up to now and, if nobody else drives it, claimed. Throws `SESSION.NOT_FOUND`. */
  existing(workspace: string, sessionId: string): Promise<LocalSession & { readonly claim: Claim }>;
  /** A session that came to nothing after all. */
  forget(workspace: string, sessionId: string): Promise<void>;
  /** Looks at a session that may have work, and drives it unless another process does. */
  wake(workspace: string, sessionId: string): Promise<void>;
  /** Tells the process that drives a session to look at it. */
  notify(owner: string, workspace: string, sessionId: string): void;
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
  for (const { lane } of sessions) {
    const state = lane.lease.held() ? lane.known()?.state : undefined;
    count.open += state?.open ? 1 : 0;
    count.waiting += state?.queue.length ?? 0;
  }
  return count;
};

const keyOf = (workspace: string, sessionId: string): string => `${workspace}/${sessionId}`;

export const createSessionLanes = (services: RegistryDeps, maxLanes: number): SessionLanes => {
  const { leases, log, logger, nats, owner, times } = services;
  /** Least recently used first. */
  const entries = new Map<string, Entry>();
  let renewedAt = 0;
  let lookedAt = 0;

  const of: SessionLanes['of'] = (workspace, sessionId, known) => {
    const key = keyOf(workspace, sessionId);
    const entry = entries.get(key) ?? create(workspace, sessionId, known ?? null);
    entries.delete(key);
    entries.set(key, entry);
    entry.usedAt = performance.now();
    return entry;
  };
  const create = (workspace: string, sessionId: string, known: SessionFold | null): Entry => {
    const { lane, driver } = services.createSession(workspace, sessionId, known);
    return { lane, driver, usedAt: 0, snapshotAt: known && 0 };
  };

  const renew = async (): Promise<void> => {
    if (performance.now() - renewedAt < times.leaseMs / 3) return;
    renewedAt = performance.now();
    const held = [...entries.values()].flatMap(({ lane }) => {
      const lease = lane.lease.held();
      return lease ? [{ lane, lease }] : [];
    });
    const askedAt = performance.now();
    const gone = new Set(
      await leases.renew(
        held.map(({ lease }) => lease),
        times.leaseMs,
      ),
    );
    for (const { lane, lease } of held) {
      // While this was on its way the lane may have come to another lease.
      if (lane.lease.held() !== lease) continue;
      if (gone.has(lease.name)) lane.lease.lost();
      else lane.lease.confirmed(askedAt);
    }
  };
  const tidy = async (): Promise<void> => {
    const now = performance.now();
    let surplus = entries.size - maxLanes;
    for (const [key, entry] of entries) {
      const { lane, driver, usedAt } = entry;
      if (driver.isWorking()) {
        entry.usedAt = now;
        continue;
      }
      const idle = now - usedAt > times.idleMs;
      if (!idle && surplus <= 0) continue;
      if (surplus-- > 0) entries.delete(key);
      if (lane.lease.held()) await lane.release();
    }
  };
  /** What others appended to our sessions, if their hint was lost. */
  const lookAround = async (): Promise<void> => {
    if (performance.now() - lookedAt < times.lookMs) return;
    lookedAt = performance.now();
    const ours = [...entries.values()].filter(({ lane }) => lane.known() && lane.lease.held());
    if (ours.length === 0) return;
    const versions = await services.readVersions(ours.map(({ lane }) => lane));
    const moved = ours.filter(({ lane }, index) => lane.fold().version < (versions[index] ?? 0));
    await Promise.all(moved.map(lookAt));
  };
  const lookAt = async ({ lane, driver }: LocalSession): Promise<void> => {
    await lane.refresh();
    driver.kick();
  };
  const snapshot = async (): Promise<void> => {
    for (const entry of entries.values()) {
      const { lane } = entry;
      const fold = lane.known();
      if (!fold) continue;
      // A fold that was loaded has left its snapshot then, if it was worth one.
      entry.snapshotAt ??= fold.version;
      if (fold.version - entry.snapshotAt < SNAPSHOT_EVERY) continue;
      await log.snapshot(lane.workspace, lane.sessionId, fold);
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

  const existing: SessionLanes['existing'] = async (workspace, sessionId) => {
    const { lane, driver } = of(workspace, sessionId);
    // A lease row stays for ever: none is made for an id that nothing is known of.
    if (!lane.known()) await lane.refresh();
    if (lane.fold().version === 0) {
      entries.delete(keyOf(workspace, sessionId));
      throw notFound('SESSION.NOT_FOUND', `there is no session ${sessionId}`);
    }
    const claim = await lane.claim();
    if (!claim.owned) await lane.refresh();
    return { lane, driver, claim };
  };

  return {
    of,
    atHand: (workspace, sessionId) => entries.get(keyOf(workspace, sessionId)),
    existing,
    forget: async (workspace, sessionId) => {
      const entry = entries.get(keyOf(workspace, sessionId));
      entries.delete(keyOf(workspace, sessionId));
      if (entry) await attempt('giving a session back', () => entry.lane.release());
    },
    wake: async (workspace, sessionId) => {
      const { lane, driver } = of(workspace, sessionId);
      // A process that stops takes nothing over, or what it has given back would be its own again until it lapses.
      if (!services.takesTurns() && !lane.lease.held()) return;
      if (!(await lane.claim()).owned) return;
      if (services.takesTurns() || driver.isWorking()) await lookAt({ lane, driver });
      else await lane.release();
    },
    notify: (to, workspace, sessionId) => {
      if (nats.isConnected())
        nats.connection.publish(driverNotificationSubject(to), JSON.stringify({ workspace, sessionId }));
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
      for (const { lane } of entries.values()) lane.lease.lost();
      await attempt('giving leases back', async () => void (await leases.releaseOwner(owner)));
      entries.clear();
    },
  };
};
