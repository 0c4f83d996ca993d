import type { EventFilter } from '@antiphon/contracts/gateway';
import { translateDatabaseError } from '@antiphon/database';
import { backoffDelay, isAppError, sleep } from '@antiphon/kernel';
import { matchesFilter } from './event-filter.js';
import { readEventRows } from './event-page.js';
import { showRows, withholdData, type EventReader } from './shown-events.js';
import type { LogTail } from './log-tail.js';
import type { TailEvent, WorkspaceTail } from './workspace-tail.js';

/** Bounds of one page of the past. */
const PAGE_EVENTS = 200;
const PAGE_BYTES = 128 * 1024;
const BACKOFF = { firstMs: 100, maxMs: 5_000 };

/** An event to deliver: its JSON, and the cursor that resumes after it. */
export interface DeliveredEvent {
  readonly position: number;
  readonly json: string;
  readonly cursor: string;
}

export interface EventSubscriptionOptions {
  readonly log: LogTail;
  readonly tail: WorkspaceTail;
  readonly filter: EventFilter;
  /** Reader whose rights decide which data the events have. */
  readonly reader: EventReader;
  /** Position after which the events begin. */
  readonly after: number;
  readonly deliver: (event: DeliveredEvent) => void;
  /** Called once, when every event of the past was delivered. */
  readonly onLive: (cursor: string) => void;
  /** Returns a promise while the client has no room, else undefined. */
  readonly waitForRoom: () => Promise<void> | undefined;
  /** Runs a read of the past when it may begin. */
  readonly readPage: (read: () => Promise<void>) => Promise<void>;
  /** Called with an error of a read that is tried again. */
  readonly onRetry: (error: unknown) => void;
}

/**
 * Delivers the events of a workspace after a position to one client, each once and in the order of
 * the log. Nothing is queued. It reads the shared tail of the log, no faster than the client. For a
 * client that is further behind it reads the log itself.
 */
export class EventSubscription {
  readonly #options: EventSubscriptionOptions;
  readonly #stopListening: () => void;
  readonly #closed = new AbortController();
  #at: number;
  #isLive = false;
  #resume: (() => void) | null = null;
  #failures = 0;

  constructor(options: EventSubscriptionOptions) {
    this.#options = options;
    this.#at = options.after;
    this.#stopListening = options.tail.onMove(() => this.#resume?.());
  }

  /** Cursor after the events delivered so far. */
  get cursor(): string {
    return this.#options.tail.cursorAt(this.#at);
  }

  close(): void {
    this.#closed.abort();
    this.#stopListening();
    this.#resume?.();
  }

  /** Resolves once it is closed. Rejects with an error that a later read cannot repair. */
  async run(): Promise<void> {
    const { tail } = this.#options;
    while (!this.#isClosed()) {
      if (tail.failure) throw tail.failure;
      await this.#options.waitForRoom();
      if (this.#isClosed()) return;
      if (this.#at >= tail.position) await this.#waitForEvents();
      else if (!this.#deliverBuffered()) await this.#deliverPage();
    }
  }

  #isClosed(): boolean {
    return this.#closed.signal.aborted;
  }

  async #waitForEvents(): Promise<void> {
    const { tail, onLive } = this.#options;
    if (!this.#isLive) onLive(this.cursor);
    this.#isLive = true;
    if (this.#at < tail.position || tail.failure) return;
    await new Promise<void>((resolve) => (this.#resume = resolve));
    this.#resume = null;
  }

  /** Delivers events of the shared buffer. Returns false if the buffer begins later. */
  #deliverBuffered(): boolean {
    const { tail, filter } = this.#options;
    const upTo = tail.position;
    const events = tail.eventsAfter(this.#at);
    if (!events) return false;
    for (const event of events) {
      const isWanted = matchesFilter(filter, { ...event.event, agents: event.agents });
      if (isWanted && !this.#deliver(this.#shown(event))) return true;
      this.#at = event.position;
    }
    this.#at = Math.max(this.#at, upTo);
    return true;
  }

  /** Returns an event of the shared buffer as the reader may see it. */
  #shown(event: TailEvent): DeliveredEvent {
    const { position, cursor } = event;
    const shown = withholdData(this.#options.reader, event.event);
    return shown === event.event ? event : { position, cursor, json: JSON.stringify(shown) };
  }

  async #deliverPage(): Promise<void> {
    const { readPage, onRetry } = this.#options;
    try {
      await readPage(() => this.#readPage());
      this.#failures = 0;
    } catch (error) {
      const known = translateDatabaseError(error);
      if (isAppError(known) && known.kind !== 'transient') throw known;
      onRetry(known);
      const delayMs = backoffDelay(BACKOFF, this.#failures++);
      await sleep(delayMs, this.#closed.signal).catch(() => undefined);
    }
  }

  async #readPage(): Promise<void> {
    if (this.#isClosed()) return;
    const { log, tail, filter, reader } = this.#options;
    const upTo = tail.position;
    const query = { ...filter, limit: PAGE_EVENTS, cursor: tail.cursorAt(this.#at) };
    const page = await readEventRows(log.pool, tail.workspace, query, { upTo, maxBytes: PAGE_BYTES });
    for (const shown of await showRows(log.pool, tail.workspace, reader, page.rows)) {
      const { position } = shown;
      const event = { position, json: JSON.stringify(shown), cursor: tail.cursorAt(position) };
      if (!this.#deliver(event)) return;
      this.#at = position;
    }
    this.#at = Math.max(this.#at, page.next ?? upTo);
  }

  /**
   * Returns false without delivering if the client has no room or the tail has ended. The event is
   * read again later: a client that reads nothing holds no events.
   */
  #deliver(event: DeliveredEvent): boolean {
    const { tail, waitForRoom, deliver } = this.#options;
    if (this.#isClosed() || tail.failure || waitForRoom() !== undefined) return false;
    deliver(event);
    return true;
  }
}
