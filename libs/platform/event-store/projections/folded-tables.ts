import pg from 'pg';
import type { WorkspaceQueries } from '@antiphon/database';
import { transient } from '@antiphon/kernel';
import { isPageFull, pageSql, toEvent, type PagedRow } from '../read/event-row.js';
import { PAGE_BYTES } from '../event-store.port.js';
import { applyInTransaction } from './projection-batch.js';
import type { ProjectionDefinition } from './projection-definition.js';
import { createShadowsSql, requireWholeLog, shadowTable } from './rebuild/shadow-tables.js';

/** Number of events in one transaction of a fold. */
const BATCH = 500;
/** Time that one read may fold, ms. A later read continues there. */
const FOLD_MS = 5_000;
/** Time that a read may wait for those before it, ms. Its caller gives up after 15 s. */
const MAX_WAIT_MS = 8_000;
/** Events between two copies at first. */
const FIRST_STRIDE = 2_000;
/** Maximum number of copies of the tables. */
const MAX_COPIES = 12;

const PAGE_SQL = `${pageSql(
  `where workspace = $4 and position > $1 and position <= $2 and category = any ($3) order by position limit ${BATCH}`,
  'position',
  String(PAGE_BYTES),
)} order by position`;

const quote = (name: string): string => pg.escapeIdentifier(name);

/** Copy of all tables at a position. */
interface Copy {
  readonly position: number;
  /** Number of events that the fold had applied. */
  readonly events: number;
}
const EMPTY: Copy = { position: 0, events: 0 };

export interface FoldOptions {
  /** Tables that the log does not produce. Reads of the past find them empty. */
  readonly emptyTables?: readonly string[];
  /** Events between two copies of the tables, at first. */
  readonly copyEvery?: number;
  /** Time that one read may fold, ms. A later read continues there. Default: 5 s. */
  readonly foldMs?: number;
  /** Time that a read may wait for those before it, ms. Default: 8 s. */
  readonly maxWaitMs?: number;
  /** Monotonic clock of the waits, ms. Default: `performance.now`. */
  readonly now?: () => number;
}

/** A read that waits for its turn. */
interface Waiting {
  readonly position: number;
  readonly since: number;
  /** Never rejects. */
  readonly run: () => Promise<void>;
}

/** Tables of one workspace as of a position that can be moved, on a connection of their own. */
export class FoldedTables {
  #at: Copy = EMPTY;
  #copies: Copy[] = [];
  #stride: number;
  #waiting: Waiting[] = [];
  #isServing = false;

  private constructor(
    private readonly client: pg.Client,
    private readonly workspace: string,
    private readonly definition: ProjectionDefinition,
    private readonly options: FoldOptions,
  ) {
    this.#stride = options.copyEvery ?? FIRST_STRIDE;
    // Without a listener, the loss of the connection would end the process.
    client.on('error', () => undefined);
  }

  static async open(
    pool: pg.Pool,
    workspace: string,
    definition: ProjectionDefinition,
    options: FoldOptions,
  ): Promise<FoldedTables> {
    const client = new pg.Client({ ...pool.options, password: pool.options.password });
    const folded = new FoldedTables(client, workspace, definition, options);
    await client.connect();
    await client.query(`set antiphon.workspace = ${pg.escapeLiteral(workspace)}; set jit = off;
      set synchronous_commit = off; set enable_seqscan = off`);
    await client.query(createShadowsSql(definition));
    for (const name of options.emptyTables ?? [])
      await client.query(`create temp table ${quote(name)} (like public.${quote(name)} including all)`);
    // From here on the connection writes temporary tables only.
    await client.query('set default_transaction_read_only = on');
    return folded;
  }

  /** Runs reads of the tables as of a position, one at a time, in the order that folds the least. */
  read<T>(position: number, work: (queries: WorkspaceQueries) => Promise<T>): Promise<T> {
    const since = this.#now();
    return this.#enqueue(position, since, async () => {
      // Work for callers that gave up would delay all later reads.
      if (this.#now() - since > this.#maxWaitMs()) throw this.#tooEarly(position);
      await this.#moveTo(position);
      return work(this.client);
    });
  }

  /** Returns false once the connection is lost. */
  isAlive(): Promise<boolean> {
    const probe = this.#enqueue(this.#at.position, this.#now(), () => this.client.query('select 1'));
    return probe.then(
      () => true,
      () => false,
    );
  }

  #now(): number {
    return (this.options.now ?? (() => performance.now()))();
  }

  #maxWaitMs(): number {
    return this.options.maxWaitMs ?? MAX_WAIT_MS;
  }

  #enqueue<T>(position: number, since: number, work: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({ position, since, run: () => work().then(resolve, reject) });
      void this.#serve();
    });
  }

  async #serve(): Promise<void> {
    if (this.#isServing) return;
    this.#isServing = true;
    for (let next = this.#takeNext(); next !== undefined; next = this.#takeNext()) await next.run();
    this.#isServing = false;
  }

  /**
   * Returns the waiting read with the nearest position ahead, else with the lowest one. So reads of
   * many positions at once need one fold. A read that has waited for half of its time is the next.
   */
  #takeNext(): Waiting | undefined {
    const [oldest] = this.#waiting;
    const byPosition = this.#waiting.toSorted((a, b) => a.position - b.position);
    const isDue = oldest !== undefined && this.#now() - oldest.since > this.#maxWaitMs() / 2;
    const ahead = byPosition.find(({ position }) => position >= this.#at.position);
    const next = isDue ? oldest : (ahead ?? byPosition[0]);
    this.#waiting = this.#waiting.filter((waiting) => waiting !== next);
    return next;
  }

  async close(): Promise<void> {
    await this.client.end().catch(() => undefined);
  }

  async #moveTo(position: number): Promise<void> {
    if (position < this.#at.position) await this.#restore(position);
    const endsAt = performance.now() + (this.options.foldMs ?? FOLD_MS);
    while (this.#at.position < position) {
      await this.#inTransaction('begin', () => this.#foldBatch(position));
      const last = this.#copies.at(-1) ?? EMPTY;
      if (this.#at.events - last.events >= this.#stride) await this.#copy();
      if (this.#at.position < position && performance.now() >= endsAt) throw this.#tooEarly(position);
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
