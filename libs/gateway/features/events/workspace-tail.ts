import { encodeCursor } from '@antiphon/contracts/log';
import { inWorkspace, translateDatabaseError } from '@antiphon/database';
import { conflict, type AppError } from '@antiphon/kernel';
import type { Pool } from 'pg';
import { hideDeletedTexts, type DeletedPart } from '../frames/deleted-parts.js';
import { AgentsOfEvents } from './agents-of-events.js';
import type { EventPageRow } from './event-page.js';
import { toView, type LoggedEvent } from './event-view.js';

/** Bounds of one read of the log's end. */
const READ_EVENTS = 200;
const READ_BYTES = 512 * 1024;
/** Number of events that a tail holds for its readers. */
const MAX_EVENTS = 2_000;

/** One event at the end of the log, shared by all readers of its workspace. */
export interface TailEvent {
  readonly position: number;
  readonly event: LoggedEvent;
  readonly agents: ReadonlySet<string>;
  readonly cursor: string;
  /** JSON of the event, made once for all readers. */
  readonly json: string;
}

interface TailRow extends EventPageRow {
  readonly head: string;
  readonly epoch: string;
  readonly bytes_so_far: string;
}

const COLUMNS = `position, category, stream_id, stream_version, event_id, type, schema_version, data, metadata,
  recorded_at, hash`;
/** The head and the events after a position in one snapshot. Without an event: one row of nulls. */
const READ_SQL = `select h.head, h.epoch, e.* from antiphon_log_head() h left join lateral (
    select ${COLUMNS}, bytes, bytes_so_far from (
      select *, sum(bytes) over (order by position rows unbounded preceding) as bytes_so_far from (
        select ${COLUMNS}, octet_length(data::text) + octet_length(metadata::text) as bytes from events
        where workspace = $1 and position > $2 and position <= h.head order by position limit $3) page) summed
    where bytes_so_far - bytes < $4) e on true order by e.position`;
const HEAD_SQL = 'select head, epoch from antiphon_log_head()';

const epochChanged = (given: number, epoch: number): AppError =>
  conflict(
    'GATEWAY.EPOCH_CHANGED',
    `the log was restored (epoch ${given}, now ${epoch}): subscribe again without a cursor`,
    { data: { given, epoch } },
  );

/**
 * The end of one workspace's log: its position, and the newest events in a bounded buffer. It is
 * read once for all its readers.
 */
export class WorkspaceTail {
  readonly workspace: string;
  readonly #pool: Pool;
  readonly #agents: AgentsOfEvents;
  #epoch: number;
  #position: number;
  #events: TailEvent[] = [];
  #bytes = 0;
  /** Position after which the buffer has every event of the workspace. */
  #bufferedAfter: number;
  readonly #listeners = new Set<() => void>();
  #lastRead: Promise<unknown> = Promise.resolve();
  #nextRead: Promise<void> | null = null;
  #failure: AppError | null = null;

  private constructor(pool: Pool, workspace: string, head: number, epoch: number) {
    this.#pool = pool;
    this.workspace = workspace;
    this.#agents = new AgentsOfEvents(pool, workspace);
    this.#epoch = epoch;
    this.#position = head;
    this.#bufferedAfter = head;
  }

  /** Creates the tail of a workspace at the end of the log. */
  static async open(pool: Pool, workspace: string): Promise<WorkspaceTail> {
    try {
      const { rows } = await pool.query<{ head: string; epoch: string }>(HEAD_SQL);
      return new WorkspaceTail(pool, workspace, Number(rows[0]?.head ?? 0), Number(rows[0]?.epoch ?? 1));
    } catch (error) {
      throw translateDatabaseError(error);
    }
  }

  /** Position up to which the log was read. */
  get position(): number {
    return this.#position;
  }

  get epoch(): number {
    return this.#epoch;
  }

  /** Error that ended the tail: the log was restored. Null while it is read. */
  get failure(): AppError | null {
    return this.#failure;
  }

  get agents(): AgentsOfEvents {
    return this.#agents;
  }

  cursorAt(position: number): string {
    return encodeCursor(position, this.#epoch);
  }

  /**
   * Returns the events after a position up to the tail's, null if the buffer no longer has all of
   * them.
   */
  eventsAfter(position: number): readonly TailEvent[] | null {
    if (position < this.#bufferedAfter) return null;
    const from = this.#events.findIndex((event) => event.position > position);
    return from < 0 ? [] : this.#events.slice(from);
  }

  /** Calls back when the tail has moved or ended. Returns the function that removes the listener. */
  onMove(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Reads the log to the end that it has now. `maxBytes` bounds the buffer. A log of another
   * history ends the tail. Calls during a read share the next one.
   */
  read(maxBytes: number): Promise<void> {
    this.#nextRead ??= this.#lastRead.then(() => {
      this.#nextRead = null;
      return this.#readToEnd(maxBytes);
    });
    const read = this.#nextRead;
    this.#lastRead = read.catch(() => undefined);
    return read;
  }

  async #readToEnd(maxBytes: number): Promise<void> {
    for (let isCut = true; isCut && !this.#failure;) {
      const rows = await this.#readRows();
      const [first, last] = [rows[0], rows.at(-1)];
      if (!first) return;
      const [head, epoch] = [Number(first.head), Number(first.epoch)];
      if (epoch !== this.#epoch || head < this.#position) return this.#fail(epochChanged(this.#epoch, epoch));
      const events = await this.#toEvents(rows.filter((row) => (row.position as string | null) !== null));
      isCut = rows.length === READ_EVENTS || Number(last?.bytes_so_far ?? 0) >= READ_BYTES;
      this.#append(events, isCut ? (events.at(-1)?.position ?? head) : head, maxBytes);
    }
  }

  async #readRows(): Promise<TailRow[]> {
    try {
      const values = [this.workspace, this.#position, READ_EVENTS, READ_BYTES];
      const query = { name: 'gateway_tail', text: READ_SQL, values };
      return (await inWorkspace(this.#pool, this.workspace).query<TailRow>(query)).rows;
    } catch (error) {
      throw translateDatabaseError(error);
    }
  }

  async #toEvents(rows: readonly TailRow[]): Promise<TailEvent[]> {
    const views = rows.map(toView);
    const evidence = views.map((view) => ({ ...view, data: view.data as Record<string, unknown> }));
    const agents = await this.#agents.find(evidence, views.at(-1)?.position ?? 0);
    return views.map((event, i) => ({
      position: event.position,
      event,
      agents: agents[i] ?? new Set(),
      cursor: this.cursorAt(event.position),
      json: JSON.stringify(event),
    }));
  }

  #append(events: readonly TailEvent[], position: number, maxBytes: number): void {
    this.#events.push(...events);
    for (const { json } of events) this.#bytes += json.length;
    for (const { event } of events) if (event.type === 'ChatMessageDeleted') this.#hideTexts(event);
    let cut = 0;
    while (cut < this.#events.length && (this.#events.length - cut > MAX_EVENTS || this.#bytes > maxBytes))
      this.#bytes -= this.#events[cut++]?.json.length ?? 0;
    if (cut > 0) this.#bufferedAfter = this.#events[cut - 1]?.position ?? this.#bufferedAfter;
    this.#events = this.#events.slice(cut);
    const hasMoved = position > this.#position;
    this.#position = position;
    if (hasMoved) this.#wake();
  }

  /** Empties the texts of a deleted message in the buffer: its turn has ended before. */
  #hideTexts({ streamId, data }: LoggedEvent): void {
    this.#events = this.#events.map((buffered) => {
      if (buffered.event.streamId !== streamId) return buffered;
      const event = hideDeletedTexts(buffered.event, [data as unknown as DeletedPart]);
      if (event === buffered.event) return buffered;
      const json = JSON.stringify(event);
      this.#bytes += json.length - buffered.json.length;
      return { ...buffered, event, json };
    });
  }

  #fail(failure: AppError): void {
    this.#failure = failure;
    this.#events = [];
    this.#wake();
  }

  #wake(): void {
    for (const notify of this.#listeners) notify();
  }
}
