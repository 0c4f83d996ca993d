import pg from 'pg';
import { inWorkspace, translateDatabaseError, type WorkspaceQueries } from '@antiphon/database';
import { transient } from '@antiphon/kernel';
import { createLogReader } from '../read/log-reader.js';
import { requirePosition } from '../read/require-position.js';
import { isPageFull, pageSql, toEvent, type PagedRow } from '../read/event-row.js';
import { PAGE_BYTES } from '../event-store.port.js';
import { applyInTransaction } from './projection-batch.js';
import type { HandleEvents, ProjectionDefinition } from './projection-definition.js';
import { createShadowsSql, requireWholeLog, shadowTable } from './rebuild/shadow-tables.js';

/** Number of events in one transaction of a fold. */
const BATCH = 500;
/** Time that one read may fold, ms. A later read continues there. */
const FOLD_MS = 5_000;
/** Events between two copies at first. */
const FIRST_STRIDE = 2_000;
/** Maximum number of copies of the tables. */
const MAX_COPIES = 12;
/** Maximum number of workspaces whose past is open, each with a connection. */
const MAX_WORKSPACES = 3;
/** Time after which an unused connection is closed, ms. */
const IDLE_MS = 120_000;

const PAGE_SQL = `${pageSql(
  `where workspace = $4 and position > $1 and position <= $2 and category = any ($3) order by position limit ${BATCH}`,
  'position',
  String(PAGE_BYTES),
)} order by position`;

/** Combines projections into one, which folds all of their tables together. */
const combine = (definitions: readonly ProjectionDefinition[]): ProjectionDefinition => {
  const handle: HandleEvents = async (client, events) => {
    for (const { categories, handle: apply } of definitions) {
      const own = events.filter(({ category }) => categories.includes(category));
      if (own.length > 0) await apply(client, own);
    }
  };
  return {
    name: 'past',
    service: definitions[0]?.service ?? '',
    categories: [...new Set(definitions.flatMap(({ categories }) => categories))],
    tables: definitions.flatMap(({ tables }) => tables),
    handle,
  };
};

const quote = (name: string): string => pg.escapeIdentifier(name);

/** Copy of all tables at a position. */
interface Copy {
  readonly position: number;
  /** Number of events that the fold had applied. */
  readonly events: number;
}
const EMPTY: Copy = { position: 0, events: 0 };

/** Tables of one workspace as of a position that can be moved, on a connection of their own. */
class FoldedTables {
  #at: Copy = EMPTY;
  #copies: Copy[] = [];
  #stride: number;
  #turn: Promise<unknown> = Promise.resolve();
  isBroken = false;

  private constructor(
    private readonly client: pg.Client,
    private readonly workspace: string,
    private readonly definition: ProjectionDefinition,
    stride: number,
  ) {
    this.#stride = stride;
    client.on('error', () => (this.isBroken = true));
  }

  static async open(
    pool: pg.Pool,
    workspace: string,
    definition: ProjectionDefinition,
    { emptyTables = [], copyEvery = FIRST_STRIDE }: Pick<PastReadsOptions, 'emptyTables' | 'copyEvery'>,
  ): Promise<FoldedTables> {
    const client = new pg.Client({ ...pool.options, password: pool.options.password });
    const folded = new FoldedTables(client, workspace, definition, copyEvery);
    await client.connect();
    await client.query(`set antiphon.workspace = ${pg.escapeLiteral(workspace)}; set jit = off;
      set synchronous_commit = off; set enable_seqscan = off`);
    await client.query(createShadowsSql(definition));
    for (const name of emptyTables)
      await client.query(`create temp table ${quote(name)} (like public.${quote(name)} including all)`);
    // From here on the connection writes temporary tables only.
    await client.query('set default_transaction_read_only = on');
    return folded;
  }

  /** Runs reads of the tables as of a position, one after another. */
  read<T>(position: number, work: (queries: WorkspaceQueries) => Promise<T>): Promise<T> {
    const turn = this.#turn.then(async () => {
      await this.#moveTo(position);
      return work(this.client);
    });
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  async close(): Promise<void> {
    this.isBroken = true;
    await this.client.end().catch(() => undefined);
  }

  async #moveTo(position: number): Promise<void> {
    if (position < this.#at.position) await this.#restore(position);
    const endsAt = performance.now() + FOLD_MS;
    while (this.#at.position < position) {
      if (performance.now() > endsAt) throw this.#tooEarly(position);
      await this.#inTransaction('begin', () => this.#foldBatch(position));
      const last = this.#copies.at(-1) ?? EMPTY;
      if (this.#at.events - last.events >= this.#stride) await this.#copy();
    }
  }

  #tooEarly(position: number): Error {
    const message = `the log is folded up to ${this.#at.position} of ${position}: try again`;
    return transient('LOG.PAST_NOT_READY', message, { data: { retryAfterSeconds: 1 } });
  }

  async #foldBatch(upTo: number): Promise<void> {
    const { client, definition, workspace } = this;
    await requireWholeLog(client, new Set());
    const values = [this.#at.position, upTo, definition.categories, workspace];
    const { rows } = await client.query<PagedRow>({ name: 'antiphon_past_page', text: PAGE_SQL, values });
    const page = rows.map(toEvent);
    await applyInTransaction(definition, client, page);
    const last = isPageFull(rows, { limit: BATCH }) ? (page.at(-1)?.position ?? upTo) : upTo;
    this.#at = { position: last, events: this.#at.events + page.length };
  }

  /** Keeps a copy of the tables, to which a later read of an earlier position returns. */
  async #copy(): Promise<void> {
    const { position } = this.#at;
    const sql = this.#tables().map(
      (name) => `create temp table ${quote(`${name}@${position}`)} as table ${shadowTable(name)}`,
    );
    await this.#inTransaction('begin read write', () => this.client.query(sql.join('; ')));
    this.#copies.push(this.#at);
    if (this.#copies.length > MAX_COPIES) await this.#thinOut();
  }

  /** Drops every other copy, and doubles the distance of the next ones. */
  async #thinOut(): Promise<void> {
    const dropped = this.#copies.filter((_, index) => index % 2 === 0);
    this.#copies = this.#copies.filter((_, index) => index % 2 === 1);
    this.#stride *= 2;
    const sql = dropped.flatMap(({ position }) =>
      this.#tables().map((name) => `drop table pg_temp.${quote(`${name}@${position}`)}`),
    );
    await this.#inTransaction('begin read write', () => this.client.query(sql.join('; ')));
  }

  async #restore(position: number): Promise<void> {
    const copy = this.#copies.findLast((one) => one.position <= position) ?? EMPTY;
    const sql = this.#tables().flatMap((name) => [
      `delete from ${shadowTable(name)}`,
      ...(copy === EMPTY
        ? []
        : [`insert into ${shadowTable(name)} select * from pg_temp.${quote(`${name}@${copy.position}`)}`]),
    ]);
    await this.#inTransaction('begin', () => this.client.query(sql.join('; ')));
    this.#at = copy;
  }

  async #inTransaction(begin: string, work: () => Promise<unknown>): Promise<void> {
    await this.client.query(begin);
    const before = this.#at;
    try {
      await work();
      await this.client.query('commit');
    } catch (error) {
      this.#at = before;
      await this.client.query('rollback').catch(() => undefined);
      throw error;
    }
  }

  #tables(): string[] {
    return [...this.definition.tables.map(({ name }) => name), 'projection_parked'];
  }
}

export interface PastReadsOptions {
  readonly pool: pg.Pool;
  readonly definitions: readonly ProjectionDefinition[];
  /** Tables that the log does not produce. Reads of the past find them empty. */
  readonly emptyTables?: readonly string[];
  /** Events between two copies of the tables, at first. */
  readonly copyEvery?: number;
}

/** Result of a read as of a position of the log. */
export interface AsOf<T> {
  readonly value: T;
  readonly position: number;
  readonly head: number;
}

/**
 * Reads projections as of any position of the log. The handlers of the projections fold the events
 * up to it into temporary tables. On a connection of their own these hide the live tables, so that
 * the statements of live reads answer for the past.
 */
export class PastReads {
  readonly #options: PastReadsOptions;
  readonly #definition: ProjectionDefinition;
  readonly #open = new Map<string, { folded: Promise<FoldedTables>; idle?: NodeJS.Timeout }>();

  constructor(options: PastReadsOptions) {
    this.#options = options;
    this.#definition = combine(options.definitions);
  }

  /**
   * Runs a read as of a position. Throws `LOG.POSITION_AHEAD`, `LOG.ARCHIVED` if events were
   * archived, and `LOG.PAST_NOT_READY` while a long log is folded.
   */
  async read<T>(
    workspace: string,
    at: number,
    work: (queries: WorkspaceQueries, position: number) => Promise<T>,
  ): Promise<AsOf<T>> {
    try {
      const head = await createLogReader(this.#options.pool).headPosition();
      const position = requirePosition(at, head);
      const folded = await this.#foldedOf(workspace);
      const value = await folded.read(position, (queries) => work(queries, position));
      return { value, position, head };
    } catch (error) {
      throw translateDatabaseError(error);
    } finally {
      this.#closeLater(workspace);
    }
  }

  /**
   * Runs a read now, or as of a position: the value then has `position` and `head`. `upTo` is the
   * last position that the read may use.
   */
  async readAsOf<T extends object>(
    workspace: string,
    at: number | undefined,
    work: (queries: WorkspaceQueries, upTo: number) => Promise<T>,
  ): Promise<T & { position?: number; head?: number }> {
    if (at === undefined) return work(inWorkspace(this.#options.pool, workspace), Number.MAX_SAFE_INTEGER);
    const { value, position, head } = await this.read(workspace, at, work);
    return { ...value, position, head };
  }

  /** Runs a read of event streams now, or up to a position. Throws `LOG.POSITION_AHEAD`. */
  async readAt<T extends object>(
    at: number | undefined,
    work: (upTo: number) => Promise<T>,
  ): Promise<T & { position?: number; head?: number }> {
    if (at === undefined) return work(Number.MAX_SAFE_INTEGER);
    const head = await createLogReader(this.#options.pool).headPosition();
    const position = requirePosition(at, head);
    return { ...(await work(position)), position, head };
  }

  async close(): Promise<void> {
    await Promise.all([...this.#open.keys()].map((workspace) => this.#close(workspace)));
  }

  async #foldedOf(workspace: string): Promise<FoldedTables> {
    const known = this.#open.get(workspace);
    clearTimeout(known?.idle);
    const usable = await known?.folded.catch(() => null);
    if (usable && !usable.isBroken) return usable;
    if (known && this.#open.get(workspace) === known) await this.#close(workspace);
    const opening = this.#open.get(workspace);
    if (opening) return opening.folded;
    const [oldest] = this.#open.keys();
    if (oldest !== undefined && this.#open.size >= MAX_WORKSPACES) void this.#close(oldest);
    const folded = FoldedTables.open(this.#options.pool, workspace, this.#definition, this.#options);
    this.#open.set(workspace, { folded });
    return folded;
  }

  #closeLater(workspace: string): void {
    const entry = this.#open.get(workspace);
    if (!entry) return;
    clearTimeout(entry.idle);
    entry.idle = setTimeout(() => void this.#close(workspace), IDLE_MS).unref();
  }

  async #close(workspace: string): Promise<void> {
    const entry = this.#open.get(workspace);
    this.#open.delete(workspace);
    clearTimeout(entry?.idle);
    await entry?.folded.then((folded) => folded.close()).catch(() => undefined);
  }
}
