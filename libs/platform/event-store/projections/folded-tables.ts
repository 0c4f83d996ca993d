import pg from 'pg';
import type { WorkspaceQueries } from '@antiphon/database';
import { transient } from '@antiphon/kernel';
import { FoldedProjection } from './folded-projection.js';
import { SNAPSHOT_EVERY } from './past-snapshots.js';
import type { ProjectionDefinition } from './projection-definition.js';
import { createPastTablesSql, PAST_POSITION } from './past-tables.js';

/** Time that one read may fold, ms. A later read continues there. */
const FOLD_MS = 5_000;
/** Time that a read may wait for those before it, ms. Its caller gives up after 15 s. */
const MAX_WAIT_MS = 8_000;
/** Size of the temporary tables from which they are emptied after a read. */
const MAX_BYTES = 16 * 2 ** 20;

const SIZE_SQL = `select coalesce(sum(pg_total_relation_size(oid)), 0) as bytes from pg_class
  where relnamespace = pg_my_temp_schema() and relkind = 'r'`;

export interface FoldOptions {
  /** Tables that the log does not produce. Reads of the past find them empty. */
  readonly emptyTables?: readonly string[];
  /** Minimum number of positions between two snapshots. */
  readonly snapshotEvery?: number;
  /** Size of the temporary tables from which they are emptied after a read. Default: 16 MiB. */
  readonly maxBytes?: number;
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
  /** Resolves with false if the read failed. Never rejects. */
  readonly run: () => Promise<boolean>;
}

/**
 * Tables of one workspace as of a position that can be moved, on a connection of their own. A
 * projection is folded once a statement names one of its tables.
 */
export class FoldedTables {
  readonly #projections: readonly FoldedProjection[];
  /** Position of the last read. */
  #at = 0;
  #bytes = 0;
  #waiting: Waiting[] = [];
  #isServing = false;

  private constructor(
    private readonly client: pg.Client,
    workspace: string,
    definitions: readonly ProjectionDefinition[],
    private readonly options: FoldOptions,
  ) {
    const every = options.snapshotEvery ?? SNAPSHOT_EVERY;
    this.#projections = definitions.map(
      (definition) => new FoldedProjection(client, workspace, definition, every),
    );
    // Without a listener, the loss of the connection would end the process.
    client.on('error', () => undefined);
  }

  static async open(
    pool: pg.Pool,
    workspace: string,
    definitions: readonly ProjectionDefinition[],
    options: FoldOptions,
  ): Promise<FoldedTables> {
    const client = new pg.Client({ ...pool.options, password: pool.options.password });
    const folded = new FoldedTables(client, workspace, definitions, options);
    await client.connect();
    await client.query(`set antiphon.workspace = ${pg.escapeLiteral(workspace)}; set jit = off;
      set synchronous_commit = off; set enable_seqscan = off`);
    await client.query(createPastTablesSql(definitions, options.emptyTables ?? []));
    // From here on reads may write nothing.
    await client.query('set default_transaction_read_only = on');
    return folded;
  }

  /** Bytes of the temporary tables after the last read. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Runs reads of the tables as of a position, one at a time, in the order that folds the least. */
  read<T>(position: number, work: (queries: WorkspaceQueries) => Promise<T>): Promise<T> {
    const since = this.#now();
    return this.#enqueue(position, since, async () => {
      // Work for callers that gave up would delay all later reads.
      if (this.#now() - since > this.#maxWaitMs()) throw tooEarly(this.#at, position);
      this.#at = position;
      await this.client.query(`select set_config('${PAST_POSITION}', $1, false)`, [String(position)]);
      return work(this.#queriesAt(position));
    });
  }

  /** Returns false once the connection is lost. */
  isAlive(): Promise<boolean> {
    const probe = this.#enqueue(this.#at, this.#now(), () => this.client.query('select 1'));
    return probe.then(
      () => true,
      () => false,
    );
  }

  async close(): Promise<void> {
    await this.client.end().catch(() => undefined);
  }

  /** Returns queries that run one after another, each after the folds of the tables that it names. */
  #queriesAt(position: number): WorkspaceQueries {
    const endsAt = performance.now() + (this.options.foldMs ?? FOLD_MS);
    let last: Promise<unknown> = Promise.resolve();
    const query = <Row extends pg.QueryResultRow>(config: pg.QueryConfig | string, values?: unknown[]) => {
      const given = typeof config === 'string' ? { text: config, ...(values ? { values } : {}) } : config;
      const found = last.then(async () => {
        for (const projection of this.#projections)
          if (projection.isNamedIn(given.text)) await projection.moveFor(given.text, position, endsAt);
        return this.client.query<Row>(given);
      });
      last = found.catch(() => undefined);
      return found;
    };
    return { query };
  }

  #now(): number {
    return (this.options.now ?? (() => performance.now()))();
  }

  #maxWaitMs(): number {
    return this.options.maxWaitMs ?? MAX_WAIT_MS;
  }

  #enqueue<T>(position: number, since: number, work: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const run = async (): Promise<boolean> => {
        try {
          resolve(await work());
          return true;
        } catch (error) {
          reject(error);
          return false;
        }
      };
      this.#waiting.push({ position, since, run });
      void this.#serve();
    });
  }

  async #serve(): Promise<void> {
    if (this.#isServing) return;
    this.#isServing = true;
    for (let next = this.#takeNext(); next !== undefined; next = this.#takeNext()) {
      const hasAnswered = (await next.run()) && this.#now() - next.since <= this.#maxWaitMs();
      // A lost connection is found by the next read.
      await this.#boundSize(hasAnswered).catch(() => undefined);
    }
    this.#isServing = false;
  }

  /**
   * Empties the tables once they are too large: no vacuum visits temporary tables. A read that was
   * refused or late is repeated by its caller, who finds them as they are.
   */
  async #boundSize(hasAnswered: boolean): Promise<void> {
    this.#bytes = await this.#readSize();
    if (!hasAnswered || this.#bytes <= (this.options.maxBytes ?? MAX_BYTES)) return;
    for (const projection of this.#projections) await projection.empty();
    this.#bytes = await this.#readSize();
  }

  async #readSize(): Promise<number> {
    const { rows } = await this.client.query<{ bytes: string }>(SIZE_SQL);
    return Number(rows[0]?.bytes ?? 0);
  }

  /**
   * Returns the waiting read with the nearest position ahead, else with the lowest one. So reads of
   * many positions at once need one fold. A read that has waited for half of its time is the next.
   */
  #takeNext(): Waiting | undefined {
    const [oldest] = this.#waiting;
    const byPosition = this.#waiting.toSorted((a, b) => a.position - b.position);
    const isDue = oldest !== undefined && this.#now() - oldest.since > this.#maxWaitMs() / 2;
    const ahead = byPosition.find(({ position }) => position >= this.#at);
    const next = isDue ? oldest : (ahead ?? byPosition[0]);
    this.#waiting = this.#waiting.filter((waiting) => waiting !== next);
    return next;
  }
}

/** Creates the error of a read whose tables are not folded yet. */
const tooEarly = (at: number, position: number): Error =>
  transient('LOG.PAST_NOT_READY', `the log is folded up to ${at} of ${position}: try again`, {
    data: { retryAfterSeconds: 1 },
  });
