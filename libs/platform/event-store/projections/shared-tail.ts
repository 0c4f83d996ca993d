import type pg from 'pg';
import { ALL_WORKSPACES, createPipelinedPool, translateDatabaseError } from '@antiphon/database';
import { nextEventLoopRound } from '@antiphon/kernel';
import type { EventPage, LogPageOptions, RecordedEvent } from '../event-store.port.js';
import type { LogReader } from '../read/log-reader.js';
import { toEvent } from '../read/event-row.js';
import { PROJECTION_PRELUDE } from './projection-checkpoint.js';
import type { ProjectionSource } from './projection-definition.js';
import type { ProjectionSnapshot, SkippedRange } from './projection-snapshot.js';
import { checkpointOf, type TailRow, TAIL_SQL, toPage } from './shared-tail-sql.js';

/** Bounds of one read, and of the events that are kept for followers that come later. */
const READ_EVENTS = 500;
const MAX_EVENTS = 1_000;
const MAX_BYTES = 8 * 1024 * 1024;

interface KeptEvent {
  readonly event: RecordedEvent;
  readonly bytes: number;
}

/** A follower of the log in this process. Without categories it reads all events. */
interface Follower {
  /** Checkpoint of a projection; null for a reader that keeps its own position. */
  readonly name: string | null;
  readonly categories: readonly string[] | null;
}

/** Result of the last read, on one snapshot of the database. */
interface TailState {
  readonly head: number;
  readonly epoch: number;
  readonly base: number;
  readonly checkpoints: TailRow['checkpoints'];
}

/**
 * The end of the log, read once for all projections of a process. One statement reads the head, the
 * checkpoints of all projections and the new events of their categories. A projection that is
 * further behind than the kept events reads the log by itself.
 */
export class SharedTail {
  private readonly followers = new Set<Follower>();
  private readonly ownPool: pg.Pool;
  /** Events of the followers' categories after `from` and up to `to`, in order. */
  private kept: KeptEvent[] = [];
  private keptBytes = 0;
  /** Position of the newest event of each category since the tail began at `beganAt`. */
  private newest = new Map<string, number>();
  private beganAt = 0;
  private from = 0;
  private to: number | null = null;
  private state: TailState | null = null;
  private readAt = -Infinity;
  /** Changes with the categories: what was read before lacks events of a new one. */
  private generation = 0;
  private readGeneration = 0;
  private running: Promise<void> = Promise.resolve();
  private next: Promise<void> | null = null;

  constructor(pool: pg.Pool) {
    const prelude = PROJECTION_PRELUDE;
    this.ownPool = createPipelinedPool(pool, { prelude, workspace: ALL_WORKSPACES });
  }

  get isUnused(): boolean {
    return this.followers.size === 0;
  }

  add(follower: Follower): void {
    const known = this.categories();
    this.followers.add(follower);
    const wanted = this.categories();
    const isWider = wanted === null ? known !== null : wanted.some((one) => known?.includes(one) === false);
    if (isWider) this.generation++;
    this.readAt = -Infinity;
  }

  remove(follower: Follower): void {
    this.followers.delete(follower);
  }

  close(): Promise<void> {
    return this.ownPool.end();
  }

  /**
   * Returns the snapshot of a projection, from a read that is at most `maxAgeMs` old. Null if the
   * projection must read the log by itself, because it is behind the kept events.
   */
  async readSnapshot(
    { name, categories, batchSize }: ProjectionSource,
    skipped: SkippedRange,
    maxAgeMs: number,
  ): Promise<ProjectionSnapshot | null> {
    const { state, to } = await this.read(maxAgeMs);
    const found = checkpointOf(state, name);
    if (found === null) return null;
    const after = found.position === skipped.from ? skipped.to : found.position;
    if (!this.covers(after) || after < state.base) return null;
    const events = this.eventsAfter(after, categories, batchSize);
    const end = Math.max(after, to);
    const upTo = events.length === batchSize ? (events.at(-1)?.position ?? end) : end;
    const { head, epoch } = state;
    return { ...found, epoch, events, upTo, head: Math.max(head, upTo) };
  }

  /** Reads a page of all events, as `readLogPage` of the log does. */
  async readPage(log: Pick<LogReader, 'readLogPage'>, options: LogPageOptions): Promise<EventPage> {
    const { state, to } = await this.read(0);
    if (!this.covers(options.after)) return log.readLogPage(options);
    const events = this.eventsAfter(options.after, null, options.limit);
    return { events, hasMore: events.length === options.limit || to < state.head };
  }

  /** Returns a number that changes with the newest event of some categories of a follower. */
  async readMark(categories: readonly string[], maxAgeMs: number): Promise<number> {
    const { state, to } = await this.read(maxAgeMs);
    if (to < state.head || this.readGeneration !== this.generation) return state.head;
    return Math.max(this.beganAt, ...categories.map((category) => this.newest.get(category) ?? 0));
  }

  /** Waits for a read that began after this call, or is at most `maxAgeMs` old. */
  private async read(maxAgeMs: number): Promise<{ readonly state: TailState; readonly to: number }> {
    if (performance.now() - this.readAt > maxAgeMs) await (this.next ??= this.readNext());
    if (this.state === null || this.to === null) throw new Error('the tail was not read');
    return { state: this.state, to: this.to };
  }

  /** One read serves all followers that were woken in the same round of the event loop. */
  private async readNext(): Promise<void> {
    await this.running.catch(() => undefined);
    await nextEventLoopRound();
    this.next = null;
    this.running = this.load();
    return this.running;
  }

  private async load(): Promise<void> {
    const startedAt = performance.now();
    const { generation } = this;
    const names = [...this.followers].flatMap(({ name }) => name ?? []);
    const after = this.readGeneration === generation ? this.to : null;
    const values = [after, names, this.categories(), READ_EVENTS];
    const query = { name: 'antiphon_shared_tail', text: TAIL_SQL, values };
    const { rows } = await this.ownPool.query<TailRow>(query).catch((error: unknown) => {
      throw translateDatabaseError(error);
    });
    const page = toPage(rows, READ_EVENTS);
    // Other categories, another history, or a gap: only later events are kept.
    if (after !== page.after || this.state?.epoch !== page.epoch) {
      this.kept = [];
      this.keptBytes = 0;
      this.newest.clear();
      this.from = this.beganAt = page.after;
    }
    for (const row of page.rows) this.keep({ event: toEvent(row.row), bytes: row.bytes });
    this.to = page.to;
    this.state = page;
    this.readGeneration = generation;
    this.readAt = startedAt;
  }

  private keep(kept: KeptEvent): void {
    this.kept.push(kept);
    this.newest.set(kept.event.category, kept.event.position);
    this.keptBytes += kept.bytes;
    while (this.kept.length > MAX_EVENTS || (this.keptBytes > MAX_BYTES && this.kept.length > 1)) {
      const [oldest] = this.kept.splice(0, 1);
      this.keptBytes -= oldest?.bytes ?? 0;
      this.from = oldest?.event.position ?? this.from;
    }
  }

  /** True if the kept events have all that follow a position, and the log has no others yet. */
  private covers(after: number): boolean {
    const to = this.to ?? -1;
    if (this.readGeneration !== this.generation) return false;
    return after >= this.from && (to > after || to >= (this.state?.head ?? 0));
  }

  private eventsAfter(after: number, categories: readonly string[] | null, limit: number): RecordedEvent[] {
    const events: RecordedEvent[] = [];
    for (const { event } of this.kept) {
      if (event.position <= after || !(categories?.includes(event.category) ?? true)) continue;
      events.push(event);
      if (events.length === limit) break;
    }
    return events;
  }

  /** Categories of all followers; null for all. */
  private categories(): string[] | null {
    const wanted = new Set<string>();
    for (const { categories } of this.followers) {
      if (categories === null) return null;
      for (const category of categories) wanted.add(category);
    }
    return [...wanted];
  }
}

/** Tails by the pool of their process. */
const tails = new WeakMap<pg.Pool, SharedTail>();

/** Joins the tail of a pool. `leave` must be called once; the last call ends its connection. */
export const joinSharedTail = (
  pool: pg.Pool,
  follower: Follower,
): { readonly tail: SharedTail; readonly leave: () => Promise<void> } => {
  const tail = tails.get(pool) ?? new SharedTail(pool);
  tails.set(pool, tail);
  tail.add(follower);
  const leave = async (): Promise<void> => {
    tail.remove(follower);
    if (!tail.isUnused) return;
    if (tails.get(pool) === tail) tails.delete(pool);
    await tail.close();
  };
  return { tail, leave };
};

/** Reader of all events by page. */
export interface SharedLogPages extends Pick<LogReader, 'readLogPage'> {
  /**
   * Ends the share in the reads until the next page. Must be called after the last page, or the
   * process reads events of all categories without end.
   */
  leave(): Promise<void>;
}

/** Creates a reader that shares the reads of the projections of a pool, such as the relay. */
export const createSharedLogPages = (pool: pg.Pool, log: Pick<LogReader, 'readLogPage'>): SharedLogPages => {
  let joined: ReturnType<typeof joinSharedTail> | null = null;
  return {
    readLogPage: (options) => {
      joined ??= joinSharedTail(pool, { name: null, categories: null });
      return joined.tail.readPage(log, options);
    },
    leave: async () => {
      const left = joined;
      joined = null;
      await left?.leave();
    },
  };
};

/** Tells a poller whether there is something to read. */
export interface LogMarks {
  /**
   * Returns a number that changes once the log has a new event, as of a read that is at most
   * `maxAgeMs` old.
   */
  readMark(maxAgeMs: number): Promise<number>;
  /** Must be called once after the last read. */
  close(): Promise<void>;
}

/** Creates marks of some categories, from the reads of the projections of a pool. */
export const createLogMarks = (pool: pg.Pool, categories: readonly string[]): LogMarks => {
  let joined: ReturnType<typeof joinSharedTail> | null = null;
  return {
    readMark: (maxAgeMs) => {
      joined ??= joinSharedTail(pool, { name: null, categories });
      return joined.tail.readMark(categories, maxAgeMs);
    },
    close: async () => joined?.leave(),
  };
};
