import { createWakeSignal, failpoint } from '@antiphon/kernel';
import type { LeaseStore } from '@antiphon/event-store';
import type { Logger } from '@antiphon/observability';
import { onLogNotification } from '../link/log-notification.js';
import type { NatsLink } from '../link/nats-link.js';
import { createLeadership } from './leadership.js';
import { createEventPublisher } from './event-publisher.js';
import { alignStream, lastSequence } from './event-stream.js';
import type { LogForRelay, RelayTarget } from './event-stream.js';
import { openJetStreamManager } from '../link/streams.js';

export interface RelayOptions {
  readonly link: NatsLink;
  readonly log: LogForRelay;
  readonly leases: LeaseStore;
  /** Unique for this process: the owner of the lease. */
  readonly owner: string;
  readonly logger: Logger;
  /** How often the log and `EVENTS` are looked at without a hint, default 1,000 ms. */
  readonly pollMs?: number;
  /** Life of the leader's lease unless renewed, default 5,000 ms. */
  readonly leaseMs?: number;
  /** Events whose acknowledgement may be outstanding, default 256. */
  readonly maxInFlight?: number;
}

export interface RelayStatus {
  readonly leading: boolean;
  /** What `EVENTS` has reached, as far as this process knows; null before it has led. */
  readonly position: number | null;
}

export interface Relay {
  status(): RelayStatus;
  /** Lets what is in flight end and gives the lease up, so that another process can go on at once. */
  stop(): Promise<void>;
}

const LEASE_NAME = 'relay';
const RETRY_MS = [50, 100, 250, 500, 1_000, 2_000, 5_000];

/**
 * Carries the log into `EVENTS`, each event once and in order, in whichever process holds the lease. Its position is
 * the stream's own last sequence: a stream that was deleted, lost or truncated is filled again from the log.
 */
export const startRelay = (options: RelayOptions): Relay => {
  const { link, log, logger, leases, owner, pollMs = 1_000, leaseMs = 5_000, maxInFlight = 256 } = options;
  const leadership = createLeadership({ leases, name: LEASE_NAME, owner, leaseMs, logger });
  const publish = createEventPublisher(link, logger);
  const nap = createWakeSignal();
  let stopping = false;
  let position: number | null = null;
  const goesOn = (): boolean => !stopping && link.isConnected() && leadership.isLeader();

  const catchUp = async (from: number): Promise<number> => {
    let reached = from;
    while (goesOn()) {
      const events = await log.readLog({ after: reached, limit: maxInFlight });
      if (events.length === 0) break;
      await failpoint('relay.batch.read');
      await publish(events);
      await failpoint('relay.batch.published');
      reached = events.at(-1)?.position ?? reached;
      position = reached;
      if (events.length < maxInFlight) break;
    }
    return reached;
  };

  const lead = async (target: RelayTarget): Promise<void> => {
    let reached = await alignStream(target, log, logger);
    position = reached;
    for (let checkAt = performance.now() + pollMs; goesOn();) {
      reached = await catchUp(reached);
      await nap.wait(pollMs);
      if (!goesOn() || performance.now() < checkAt) continue;
      // A stream that somebody deleted, or that another leader went on with, does not say so by itself.
      if ((await lastSequence(target)) !== reached) return;
      checkAt = performance.now() + pollMs;
    }
  };

  const turn = async (target: RelayTarget): Promise<void> => {
    if (link.isConnected() && (leadership.isLeader() || (await leadership.campaign()))) await lead(target);
    else await nap.wait(pollMs);
  };

  const run = async (): Promise<void> => {
    const target: RelayTarget = { link, manager: await openJetStreamManager(link.connection) };
    for (let failures = 0; !stopping && !link.connection.isClosed(); failures++) {
      try {
        await turn(target);
        failures = -1;
      } catch (error) {
        if (stopping) return;
        logger.warn({ err: error, position }, 'the relay was interrupted; it goes on from where EVENTS ends');
        await nap.wait(RETRY_MS[Math.min(failures, RETRY_MS.length - 1)] ?? 0);
      }
    }
  };

  const stopHints = onLogNotification(link, () => nap.wake());
  const stopListening = link.onReconnect(() => nap.wake());
  const running = run();
  return {
    status: () => ({ leading: leadership.isLeader(), position }),
    stop: async () => {
      stopping = true;
      nap.wake();
      await running;
      stopListening();
      stopHints();
      await leadership.release();
    },
  };
};
