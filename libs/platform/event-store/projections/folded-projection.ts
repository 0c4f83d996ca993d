import type pg from 'pg';
import { sleep, transient } from '@antiphon/kernel';
import { PAGE_BYTES } from '../event-store.port.js';
import { isPageFull, type PagedRow, pageSql, toEvent } from '../read/event-row.js';
import { PastSnapshots, strideOf, thinOut, type StoredSnapshot } from './past-snapshots.js';
import { applyInTransaction } from './projection-batch.js';
import type { ProjectionDefinition } from './projection-definition.js';
import { analyzeShadows, EMPTY_FOLD, type Fold } from './rebuild/fold-log.js';
import { requireWholeLog, shadowTable } from './rebuild/shadow-tables.js';

/** Maximum number of events in one transaction of a fold. */
const BATCH = 2_000;
/** Interval of looks at the checkpoint of a projection that is behind a read, ms. */
const LOOK_MS = 20;

const PAGE_SQL = `${pageSql(
  `where workspace = $4 and position > $1 and position <= $2 and category = any ($3) and type <> all ($5)
    order by position limit ${BATCH}`,
  'position',
  String(PAGE_BYTES),
)} order by position`;
const CHECKPOINT_SQL = 'select position from projection_checkpoints where name = $1';

/** Returns the words of a statement, among them the names of its tables. */
const wordsOf = (text: string): readonly string[] => text.split(/\W/u);

/** Temporary tables of one projection in one workspace, as of a position that can be moved. */
export class FoldedProjection {
  #at: Fold = EMPTY_FOLD;
  /** Position of the newest snapshot that the fold began at or has stored. */
  #savedAt = 0;
  #savedBytes = 0;
  readonly #snapshots: PastSnapshots;
  readonly #names: ReadonlySet<string>;
  /** Tables whose rows are only inserted: their live rows are read. */
  readonly #liveNames: ReadonlySet<string>;
  readonly #tables: readonly string[];

  constructor(
    private readonly client: pg.Client,
    private readonly workspace: string,
    private readonly definition: ProjectionDefinition,
    private readonly every: number,
  ) {
    this.#snapshots = new PastSnapshots(definition);
    const { tables } = definition;
    const names = tables.map(({ name }) => name);
    this.#tables = tables
      .filter(({ positionColumn }) => positionColumn === undefined)
      .map(({ name }) => name);
    this.#names = new Set(names);
    this.#liveNames = new Set(names.filter((name) => !this.#tables.includes(name)));
  }

  /** Returns true if a statement names one of the tables. */
  isNamedIn(text: string): boolean {
    return wordsOf(text).some((word) => this.#names.has(word));
  }

  /** Moves the tables that a statement names. Throws `LOG.PAST_NOT_READY` if that takes longer. */
  async moveFor(text: string, position: number, endsAt: number): Promise<void> {
    await this.#moveTo(position, endsAt);
    const isLive = wordsOf(text).some((word) => this.#liveNames.has(word));
    if (isLive) await this.#waitForLiveRows(position, endsAt);
  }

  async #moveTo(position: number, endsAt: number): Promise<void> {
    if (position === this.#at.position) return;
    const from = await this.#snapshots.find(this.client, this.workspace, position);
    const isAhead = from !== undefined && from.position > this.#at.position;
    if (position < this.#at.position || isAhead) await this.#restore(from);
    while (this.#at.position < position) {
      await this.#inTransaction('begin', () => this.#foldBatch(position));
      await this.#saveIfDue(position);
      if (this.#at.position < position) this.#requireTime(endsAt, position);
    }
  }

  /** Empties the tables, which frees their files. */
  async empty(): Promise<void> {
    if (this.#at !== EMPTY_FOLD) await this.#restore(undefined);
  }

  #requireTime(endsAt: number, position: number): void {
    if (performance.now() < endsAt) return;
    const message = `the log is folded up to ${this.#at.position} of ${position}: try again`;
    throw transient('LOG.PAST_NOT_READY', message, { data: { retryAfterSeconds: 1 } });
  }

  async #foldBatch(upTo: number): Promise<void> {
    const { client, definition, workspace } = this;
    await requireWholeLog(client, new Set());
    const { position, events } = this.#at;
    const values = [position, upTo, definition.categories, workspace, definition.unusedTypes ?? []];
    const { rows } = await client.query<PagedRow>({ name: 'antiphon_past_page', text: PAGE_SQL, values });
    const page = rows.map(toEvent);
    await applyInTransaction(definition, client, page);
    const last = isPageFull(rows, { limit: BATCH }) ? (page.at(-1)?.position ?? upTo) : upTo;
    this.#at = { position: last, events: events + page.length };
    await analyzeShadows(client, { tables: this.#folded() }, events, this.#at.events);
  }

  /** Stores a snapshot after each stride, so that a later read begins there. */
  async #saveIfDue(head: number): Promise<void> {
    const { position } = this.#at;
    // A page may end within an append, whose later events may need rows that are left out.
    if (this.definition.tables.some(({ snapshotRows }) => snapshotRows !== undefined)) return;
    const stride = strideOf(head, this.#savedBytes, this.every);
    if (Math.floor(position / stride) <= Math.floor(this.#savedAt / stride)) return;
    this.#savedAt = position;
    await this.#inTransaction('begin read write', async () => {
      const saved = await this.#snapshots.saveFolded(this.client, this.workspace, position);
      if (!saved) return;
      const all = await this.#snapshots.list(this.client);
      const own = all.filter(({ scope }) => scope === this.workspace);
      this.#savedBytes = own.find((one) => one.position === position)?.bytes ?? 0;
      await this.#snapshots.keep(this.client, this.workspace, thinOut(own, head, this.every));
    });
  }

  async #restore(from: StoredSnapshot | undefined): Promise<void> {
    const { client, definition, workspace } = this;
    const shadows = this.#tables.map(shadowTable).join(', ');
    await this.#inTransaction('begin read write', async () => {
      // A delete would leave its rows in the files, because no vacuum visits temporary tables.
      await client.query(`truncate ${shadows}`);
      await client.query('delete from pg_temp.projection_parked where projection = $1', [definition.name]);
      this.#at = EMPTY_FOLD;
      if (from === undefined) return;
      await this.#snapshots.restore(client, workspace, from);
      await client.query(`analyze ${shadows}`);
      this.#at = { position: from.position, events: 0 };
    });
    this.#savedAt = from?.position ?? 0;
    this.#savedBytes = from?.bytes ?? 0;
  }

  /** Rows that are only inserted are read from the live table, which follows the log. */
  async #waitForLiveRows(position: number, endsAt: number): Promise<void> {
    for (;;) {
      const values = [this.definition.name];
      const { rows } = await this.client.query<{ position: string }>(CHECKPOINT_SQL, values);
      if (Number(rows[0]?.position ?? 0) >= position) return;
      this.#requireTime(endsAt, position);
      await sleep(LOOK_MS);
    }
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

  #folded(): ProjectionDefinition['tables'] {
    return this.#tables.map((name) => ({ name }));
  }
}
