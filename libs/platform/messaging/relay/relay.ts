import { backoffDelay, createWakeSignal, failpoint } from '@antiphon/kernel';
import type { WorkStarts } from '@antiphon/database';
import type { EventPage, LeaseStore, RecordedEvent } from '@antiphon/event-store';
import type { Logger } from '@antiphon/observability';
import { onLogNotification } from '../link/log-notification.js';
import type { NatsLink } from '../link/nats-link.js';
import { openJetStreamManager } from '../link/streams.js';
import { CarefulRelay } from './careful-relay.js';
import type { RelayPage } from './careful-relay.js';
import { EventPublisher } from './event-publisher.js';
import { alignStream, lastSequence } from './event-stream.js';
import type { LogForRelay, RelayTarget } from './event-stream.js';
import { Leadership } from './leadership.js';

export interface RelayOptions {
  readonly link: NatsLink;
  readonly log: LogForRelay;
  readonly leases: LeaseStore;
  /** Owner of the lease, unique for this process. */
  readonly owner: string;
  readonly logger: Logger;
  /** Interval between polls of the log and of `EVENTS`. Default: 1,000 ms. */
  readonly pollMs?: number;
  /** Lifetime of the leader's lease unless renewed. Default: 5,000 ms. */
  readonly leaseMs?: number;
  /** Maximum published events that are not acknowledged yet. Default: 256. */
  readonly maxInFlight?: number;
  /** Counts of starts (`CarefulRelay`). */
  readonly starts?: WorkStarts;
  /** Returns the message about an event that `EVENTS` has; null for an event without one. */
  readonly announce?: (event: RecordedEvent) => Announcement | null;
}

/** A message outside of JetStream for readers that need few of the events. It may be lost. */
export interface Announcement {
  readonly subject: string;
  readonly data: string;
}

export interface RelayStatus {
  readonly leading: boolean;
  /** Last position known to be in `EVENTS`; null before this process has led. */
  readonly position: number | null;
}

const LEASE_NAME = 'relay';
const markOf = ({ workspace, streamId, type }: RecordedEvent): string => `${workspace} ${streamId} ${type}`;
const BACKOFF = { firstMs: 50, maxMs: 5_000 };

/**
 * Relays the log to `EVENTS`, each event once and in order, in the process that holds the lease.
 * The stream's own last sequence is the relay's position: a stream that was deleted, lost or
 * truncated is filled again from the log.
 */
export class Relay {
  readonly #link: NatsLink;
  readonly #log: LogForRelay;
  readonly #logger: Logger;
  readonly #pollMs: number;
  readonly #careful: CarefulRelay;
  readonly #leadership: Leadership;
  readonly #publisher: EventPublisher;
  readonly #announce: NonNullable<RelayOptions['announce']>;
  readonly #signal = createWakeSignal();
  readonly #unsubscribes: readonly (() => void)[];
  readonly #running: Promise<void>;
  #stopping = false;
  #position: number | null = null;

  constructor(options: RelayOptions) {
    const { link, log, logger, leases, owner, leaseMs = 5_000 } = options;
    this.#link = link;
    this.#log = log;
    this.#logger = logger;
    this.#pollMs = options.pollMs ?? 1_000;
    this.#careful = new CarefulRelay(options.starts, options.maxInFlight ?? 256);
    this.#announce = options.announce ?? (() => null);
    this.#leadership = new Leadership({ leases, name: LEASE_NAME, owner, leaseMs, logger });
    this.#publisher = new EventPublisher(link, logger);
    const wake = (): void => this.#signal.wake();
    this.#unsubscribes = [onLogNotification(link, wake), link.onReconnect(wake)];
    this.#running = this.#run();
  }

  status(): RelayStatus {
    return { leading: this.#leadership.isLeader(), position: this.#position };
  }

  /**
   * Finishes the batch in flight and releases the lease, so that another process can lead at once.
   */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#signal.wake();
    await this.#releasePage();
    await this.#running;
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
    await this.#leadership.release();
  }

  async #run(): Promise<void> {
    const link = this.#link;
    const target: RelayTarget = { link, manager: await openJetStreamManager(link.connection) };
    for (let failures = 0; !this.#stopping && !link.connection.isClosed(); failures++) {
      try {
        await this.#leadOrWait(target);
        failures = -1;
      } catch (error) {
        if (this.#stopping) return;
        this.#logger.warn({ err: error, position: this.#position }, 'relay interrupted, retrying');
        await this.#signal.wait(backoffDelay(BACKOFF, failures));
      }
    }
  }

  async #leadOrWait(target: RelayTarget): Promise<void> {
    const leads =
      this.#link.isConnected() && (this.#leadership.isLeader() || (await this.#leadership.campaign()));
    if (!leads) return void (await this.#signal.wait(this.#pollMs));
    try {
      await this.#lead(target);
    } finally {
      await this.#log.leaveLogPages?.();
    }
  }

  async #lead(target: RelayTarget): Promise<void> {
    let position = await alignStream(target, this.#log, this.#logger);
    this.#position = position;
    this.#careful.beginTerm();
    for (let checkAt = performance.now() + this.#pollMs; this.#canPublish();) {
      position = await this.#catchUp(position);
      await this.#signal.wait(this.#pollMs);
      if (!this.#canPublish() || performance.now() < checkAt) continue;
      // Detects a stream that an operator deleted or another leader published to.
      if ((await lastSequence(target)) !== position) return;
      checkAt = performance.now() + this.#pollMs;
    }
  }

  async #catchUp(from: number): Promise<number> {
    let position = from;
    while (this.#canPublish()) {
      const page = await this.#careful.beginPage(position);
      const { events, hasMore } = await this.#publishPage(position, page).catch(async (error: unknown) => {
        await this.#releasePage();
        throw error;
      });
      await this.#careful.endPage(events.length);
      if (events.length === 0) break;
      position = events.at(-1)?.position ?? position;
      this.#position = position;
      if (!hasMore) break;
    }
    return position;
  }

  async #publishPage(after: number, { limit, omits }: RelayPage): Promise<EventPage> {
    const page = await this.#log.readLogPage({ after, limit });
    const { events } = page;
    if (events.length === 0) return page;
    await failpoint('relay.batch.read');
    if (!omits) await failpoint('work.relay.begun', () => events.map(markOf).join(' '));
    await this.#publisher.publish(events, { omits });
    await failpoint('relay.batch.published');
    if (!omits) this.#publishAnnouncements(events);
    return page;
  }

  /** A count that stays costs one careful page. */
  async #releasePage(): Promise<void> {
    await this.#careful.releasePage().catch((err: unknown) => {
      this.#logger.warn({ work: 'relay', err }, 'work not released');
    });
  }

  #publishAnnouncements(events: readonly RecordedEvent[]): void {
    for (const event of events) {
      const announcement = this.#announce(event);
      if (announcement && this.#link.isConnected())
        this.#link.connection.publish(announcement.subject, announcement.data);
    }
  }

  #canPublish(): boolean {
    return !this.#stopping && this.#link.isConnected() && this.#leadership.isLeader();
  }
}

/** Starts a relay, which runs until it is stopped. */
export const startRelay = (options: RelayOptions): Relay => new Relay(options);
