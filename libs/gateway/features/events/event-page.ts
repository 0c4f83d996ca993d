import type { EventsQuery } from '@antiphon/contracts/gateway';
import { decodeCursor } from '@antiphon/contracts/log';
import { inWorkspace, type WorkspaceQueries } from '@antiphon/database';
import { invalid } from '@antiphon/kernel';

import type { Pool } from 'pg';
import { requireCursor } from '@antiphon/event-store';
import {
  addFilters,
  createConditions,
  EVENT_SIZE_SQL,
  type Found,
  hasIndex,
  namedStreams,
  type Range,
} from './event-filter.js';
import { searchText, type SearchStep } from './text-search.js';

/** Maximum size of the data and metadata of a page as JSON, bytes. It has at least one event. */
const PAGE_BYTES = 4 * 1024 * 1024;
/** Maximum size that the rows of one query may have when their exact size is not known, bytes. */
const CHUNK_BYTES = 8 * 1024 * 1024;
/** Positions that one query examines for a filter without an index. */
const WINDOW = 10_000;
/** Time after which a search ends with a cursor, ms. */
const SEARCH_MS = 1_000;
/** Bytes of text after which a search ends. A statement may read 64 MiB beyond it. */
const SEARCH_BYTES = 64 * 1024 * 1024;
/** Tolerated steps of the database's clock, ms. Times rise with positions but for them. */
const SKEW_MS = 300_000;

/** A row of `events` as `pg` returns it, with the size of its data and metadata. */
export interface EventPageRow {
  readonly position: string;
  readonly category: string;
  readonly stream_id: string;
  readonly stream_version: string;
  readonly event_id: string;
  readonly type: string;
  readonly schema_version: number;
  readonly data: Record<string, unknown>;
  readonly metadata: Record<string, unknown>;
  readonly recorded_at: Date;
  readonly hash: Buffer;
  readonly bytes: number;
}

/** Bounds of a page. */
export interface EventPageBounds {
  /** Last position to search. Default: the end of the log. */
  readonly upTo?: number;
  /** Maximum size of the data and metadata of the page as JSON, bytes. */
  readonly maxBytes?: number;
  /** Categories that a search of a text finds. Default, or null: all. */
  readonly categories?: readonly string[] | null;
}

export interface EventRows {
  readonly rows: readonly EventPageRow[];
  /** Position after which the next page begins; null if no event follows. */
  readonly next: number | null;
}

interface Statement {
  readonly text: string;
  readonly values: unknown[];
}

/** Returns the statement of matching positions, in order. A query of a text has its own one. */
export const positionsSql = (
  workspace: string,
  query: EventsQuery,
  range: Range,
  limit: number,
  streams: readonly string[] | null = null,
): Statement => {
  const target = createConditions();
  addFilters(target, workspace, query, range, streams);
  const { conditions, values } = target;
  // Versions of a stream rise with positions. Its index has them in order, without a sort.
  const place = namedStreams(query).length > 0 ? 'stream_version' : 'position';
  return {
    text: `select position, ${EVENT_SIZE_SQL} as bytes
       from events where ${conditions.join(' and ')} order by ${place} ${query.order ?? 'asc'} limit $${values.length + 1}`,
    values: [...values, limit],
  };
};

/** Statement of the first position of a workspace at some time. Its range of times is an index's. */
export const FIRST_AT_SQL = `select min(position) as position from
  (select position from events where workspace = $1 and recorded_at >= $2 and recorded_at < $3 offset 0) found`;
const NEXT_SQL = `select position, recorded_at from events where workspace = $1 and position > $2 order by position limit 1`;
const NEXT_BACK_SQL = `select position, recorded_at from events where workspace = $1 and position <= $2 order by position desc limit 1`;
const STREAMS_SQL = `select distinct stream_id from events where workspace = $1 and position > $2 and position <= $3`;
// The first event of a session names its agent. A run names the agent of each task that starts.
// A queued task names its agent when it is queued for one, and when one claims it.
const OF_AGENT_SQL = `select stream_id from events where workspace = $1 and stream_id = any ($2) and stream_version = 1
    and type = 'SessionStarted' and data->>'agentId' = $4
  union select stream_id from events where workspace = $1 and stream_id = any ($3)
    and type in ('TaskStarted', 'TaskQueued', 'TaskAssigned') and data->>'agentId' = $4`;
const ROWS_SQL = `select position, category, stream_id, stream_version, event_id, type, schema_version, data, metadata,
    recorded_at, hash, octet_length(data::text) + octet_length(metadata::text) as bytes
  from events where position = any ($1) order by position`;

const decodePosition = (cursor: string): number =>
  requireCursor(decodeCursor(cursor), 'GATEWAY.INVALID_CURSOR');

/** Searches a workspace's log for one page, in windows of bounded size. */
class EventSearch {
  readonly #db: WorkspaceQueries;
  readonly #workspace: string;
  readonly #query: EventsQuery;
  readonly #endsAt: number;
  readonly #upTo: number | null;
  readonly #maxBytes: number;
  readonly #categories: readonly string[] | null;
  readonly #isBackward: boolean;
  #bytes = 0;

  constructor(pool: Pool, workspace: string, query: EventsQuery, now: number, bounds: EventPageBounds) {
    this.#db = inWorkspace(pool, workspace);
    this.#workspace = workspace;
    this.#query = query;
    this.#endsAt = now + SEARCH_MS;
    this.#upTo = bounds.upTo ?? query.at ?? null;
    this.#isBackward = query.order === 'desc';
    this.#maxBytes = bounds.maxBytes ?? PAGE_BYTES;
    this.#categories = bounds.categories ?? null;
  }

  async read(now: () => number): Promise<EventRows> {
    const { limit, offset = 0 } = this.#query;
    const { found, next } = await this.#search(offset + limit + 1, now);
    const page = found.slice(offset, offset + limit);
    const rows = await this.#readRows(page);
    const last = rows.at(-1);
    const isCut = rows.length < page.length || found.length > offset + limit;
    return { rows, next: isCut && last ? Number(last.position) : next };
  }

  /** Finds matching positions. `next` is where the search continues, null at the end of the log. */
  async #search(limit: number, now: () => number): Promise<{ found: Found[]; next: number | null }> {
    if (this.#isBackward) return this.#searchBack(limit, now);
    const found: Found[] = [];
    let after = await this.#start();
    for (;;) {
      const range = hasIndex(this.#query) ? { after, upTo: this.#upTo } : await this.#nextWindow(after);
      if (!range) return { found, next: null };
      const step = await this.#findIn(range, limit - found.length);
      found.push(...step.found);
      const end = step.reached ?? range.upTo;
      if (end === null || end === this.#upTo || found.length >= limit) return { found, next: null };
      after = end;
      if (this.#mustEnd(step, now())) return { found, next: after };
    }
  }

  /** Finds matching positions from the newest on. `next` is where the search continues. */
  async #searchBack(limit: number, now: () => number): Promise<{ found: Found[]; next: number | null }> {
    const { cursor, after = 0 } = this.#query;
    const found: Found[] = [];
    let upTo = Math.min(cursor === undefined ? Infinity : decodePosition(cursor) - 1, this.#upTo ?? Infinity);
    for (;;) {
      const last = await this.#lastUpTo(upTo);
      if (last === null || last <= after) return { found, next: null };
      const from = hasIndex(this.#query) ? after : Math.max(after, last - WINDOW);
      const step = await this.#findIn({ after: from, upTo: last }, limit - found.length);
      found.push(...step.found);
      const end = step.reached === null ? from : step.reached - 1;
      if (end <= after || found.length >= limit) return { found, next: null };
      upTo = end;
      if (this.#mustEnd(step, now())) return { found, next: upTo + 1 };
    }
  }

  /**
   * Returns true once the search has taken its time or read its bytes. A page by offset counts from
   * the beginning, so that its search cannot continue later: it is refused instead.
   */
  #mustEnd({ bytes }: SearchStep, now: number): boolean {
    this.#bytes += bytes;
    const hasReadAll = this.#bytes >= SEARCH_BYTES;
    if (this.#query.offset === undefined) return hasReadAll || now >= this.#endsAt;
    if (!hasReadAll) return false;
    const message = 'the search of a text by `offset` would read too much of the log: use `cursor`';
    throw invalid('GATEWAY.INVALID_QUERY', message);
  }

  /** Returns the newest position of the workspace up to one. */
  async #lastUpTo(upTo: number): Promise<number | null> {
    const values = [this.#workspace, Math.min(upTo, Number.MAX_SAFE_INTEGER)];
    const { rows } = await this.#db.query<{ position: string }>(NEXT_BACK_SQL, values);
    return rows[0] ? Number(rows[0].position) : null;
  }

  /** Returns the position after which the search begins. */
  async #start(): Promise<number> {
    const { cursor, since } = this.#query;
    const after = cursor === undefined ? (this.#query.after ?? 0) : decodePosition(cursor);
    if (since === undefined || hasIndex(this.#query)) return after;
    const first = await this.#firstAt(Date.parse(since) - SKEW_MS);
    // Without an event since then there is nothing to search, however long the log is.
    return first === null ? Number.MAX_SAFE_INTEGER : Math.max(after, first - 1);
  }

  /** Finds the first position at a time, in ranges that grow until one has an event. */
  async #firstAt(time: number): Promise<number | null> {
    let from = time;
    for (let span = 60_000; from < Date.now() + SKEW_MS; span *= 8) {
      const values = [this.#workspace, new Date(from).toISOString(), new Date(from + span).toISOString()];
      const { rows } = await this.#db.query<{ position: string | null }>(FIRST_AT_SQL, values);
      const position = rows[0]?.position ?? null;
      if (position !== null) return Number(position);
      from += span;
    }
    return null;
  }

  /** Returns the next window that has an event of the workspace, null at the end of the search. */
  async #nextWindow(after: number): Promise<{ after: number; upTo: number } | null> {
    const { rows } = await this.#db.query<{ position: string; recorded_at: Date }>(NEXT_SQL, [
      this.#workspace,
      after,
    ]);
    const [next] = rows;
    const { until } = this.#query;
    if (!next || (until !== undefined && next.recorded_at.getTime() > Date.parse(until) + SKEW_MS))
      return null;
    const begin = Number(next.position) - 1;
    if (begin >= (this.#upTo ?? Infinity)) return null;
    return { after: begin, upTo: Math.min(begin + WINDOW, this.#upTo ?? Infinity) };
  }

  async #findIn(range: Range, limit: number): Promise<SearchStep> {
    const { agent, text: sought } = this.#query;
    const streams = agent === undefined ? null : await this.#streamsOfAgent(agent, range);
    const [workspace, query, categories] = [this.#workspace, this.#query, this.#categories];
    if (sought !== undefined)
      return searchText(this.#db, { workspace, query, sought, range, limit, streams, categories });
    const { text, values } = positionsSql(workspace, query, range, limit, streams);
    const { rows } = await this.#db.query<{ position: string; bytes: string }>(text, values);
    const found = rows.map(({ position, bytes }) => ({ position: Number(position), bytes: Number(bytes) }));
    return { found, reached: null, bytes: 0 };
  }

  /** Returns the event streams of an agent that have events in a range. */
  async #streamsOfAgent(agent: string, { after, upTo }: Range): Promise<string[]> {
    const named = namedStreams(this.#query);
    const all = named.length === 0 ? await this.#streamsIn(after, upTo) : named;
    const sessions = all.filter((stream) => stream.startsWith('session-'));
    const others = all.filter((stream) => /^(run|task)-/.test(stream));
    const values = [this.#workspace, sessions, others, agent];
    const { rows } = await this.#db.query<{ stream_id: string }>(OF_AGENT_SQL, values);
    return rows.map(({ stream_id: stream }) => stream);
  }

  async #streamsIn(after: number, upTo: number | null): Promise<string[]> {
    const values = [this.#workspace, after, upTo ?? Number.MAX_SAFE_INTEGER];
    const { rows } = await this.#db.query<{ stream_id: string }>(STREAMS_SQL, values);
    return rows.map(({ stream_id: stream }) => stream);
  }

  /** Reads rows in chunks until the page has its size. An event that exceeds it is left out. */
  async #readRows(page: readonly Found[]): Promise<EventPageRow[]> {
    const rows: EventPageRow[] = [];
    let bytes = 0;
    for (let from = 0; from < page.length;) {
      const chunk = takeChunk(page, from);
      from += chunk.length;
      const read = await this.#db.query<EventPageRow>(ROWS_SQL, [chunk]);
      for (const row of this.#isBackward ? read.rows.reverse() : read.rows) {
        bytes += row.bytes;
        if (rows.length > 0 && bytes > this.#maxBytes) return rows;
        rows.push(row);
      }
    }
    return rows;
  }
}

/** Returns the next positions whose events surely fit into a chunk, at least one. */
const takeChunk = (page: readonly Found[], from: number): number[] => {
  const chunk: number[] = [];
  let bytes = 0;
  for (const { position, bytes: size } of page.slice(from)) {
    bytes += size;
    if (chunk.length > 0 && bytes > CHUNK_BYTES) break;
    chunk.push(position);
  }
  return chunk;
};

/**
 * Reads the rows of a page of a workspace's log, in the order of the query. The page is bounded in
 * number, bytes and search time. Throws `GATEWAY.INVALID_CURSOR`.
 */
export const readEventRows = (
  pool: Pool,
  workspace: string,
  query: EventsQuery,
  bounds: EventPageBounds = {},
): Promise<EventRows> =>
  new EventSearch(pool, workspace, query, performance.now(), bounds).read(() => performance.now());
