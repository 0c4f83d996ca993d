import pg from 'pg';
import { ALL_WORKSPACES, type WorkspaceQueries } from '@antiphon/database';
import type { ProjectionDefinition, ProjectionTable } from './projection-definition.js';
import { liveTable, shadowTable } from './rebuild/shadow-tables.js';

/** Minimum number of positions between two snapshots. */
export const SNAPSHOT_EVERY = 10_000;
/** Maximum number of snapshots of a projection in one scope. */
const MAX_SNAPSHOTS = 32;
/** Maximum stored bytes of the snapshots of a projection. */
const MAX_BYTES = 256 * 2 ** 20;
/** Rows of a table that are stored together. */
const PART = 1_000;

/** Snapshot of a projection. Its scope is one workspace, or all of them. */
export interface StoredSnapshot {
  readonly scope: string;
  readonly position: number;
  readonly bytes: number;
}

interface Row {
  readonly scope: string;
  readonly position: string;
  readonly bytes: string;
}

const toStored = (row: Row): StoredSnapshot => ({
  scope: row.scope,
  position: Number(row.position),
  bytes: Number(row.bytes),
});

const literal = (text: string): string => pg.escapeLiteral(text);
const FORM_SQL = `select md5(string_agg(format('%s.%s %s', c.relname, a.attname, a.atttypid), ',' order by c.relname, a.attnum)) as form
  from pg_attribute a join pg_class c on c.oid = a.attrelid
  where a.attrelid = any ($1::regclass[]) and a.attnum > 0 and not a.attisdropped`;
// A restored log has another epoch, and may have other events at the same positions. Events of an
// archive cannot be folded again, and rows that retention deleted must not stay in a snapshot.
const USABLE = `s.form = $2 and s.epoch = (select epoch from log_head where id = 1) and not exists (select from log_archives)`;
const FIND_SQL = `select workspace as scope, position, bytes from projection_snapshots s
  where projection = $1 and ${USABLE} and workspace in ('*', $3) and position <= $4 order by position desc limit 1`;
const LIST_SQL = `select workspace as scope, position, bytes from projection_snapshots s
  where projection = $1 and ${USABLE} order by position, made_at`;
const KEEP_SQL = `with gone as (delete from projection_snapshots s where projection = $1 and ($2::text is null or workspace = $2)
    and not exists (select from unnest($3::text[], $4::bigint[]) k (scope, position)
      where k.scope = s.workspace and k.position = s.position)
    returning workspace, position)
  delete from projection_snapshot_rows r using gone g where r.projection = $1 and r.scope = g.workspace and r.position = g.position`;
const SIZE_SQL = `update projection_snapshots set bytes = (select coalesce(sum(pg_column_size(r.rows)), 0)
    from projection_snapshot_rows r where r.projection = $1 and r.scope = $2 and r.position = $3)
  where projection = $1 and workspace = $2 and position = $3`;

/**
 * Returns the number of positions between two snapshots. It doubles while the snapshots up to the
 * head would be too many or too large. On average one is half as large as the newest one.
 */
export const strideOf = (head: number, newestBytes: number, every = SNAPSHOT_EVERY): number => {
  let stride = every;
  while (head / stride > MAX_SNAPSHOTS || (newestBytes / 2) * (head / stride) > MAX_BYTES) stride *= 2;
  return stride;
};

/** Reads and writes the snapshots of one projection. */
export class PastSnapshots {
  readonly #definition: ProjectionDefinition;
  #form: string | undefined;

  constructor(definition: ProjectionDefinition) {
    this.#definition = definition;
  }

  /** Returns the newest usable snapshot up to a position. */
  async find(
    queries: WorkspaceQueries,
    workspace: string,
    position: number,
  ): Promise<StoredSnapshot | undefined> {
    const values = [this.#definition.name, await this.#readForm(queries), workspace, position];
    const { rows } = await queries.query<Row>(FIND_SQL, values);
    return rows.map(toStored)[0];
  }

  /** Returns the usable snapshots of all scopes, the lowest position first. */
  async list(queries: WorkspaceQueries): Promise<StoredSnapshot[]> {
    const values = [this.#definition.name, await this.#readForm(queries)];
    return (await queries.query<Row>(LIST_SQL, values)).rows.map(toStored);
  }

  /**
   * Copies the live rows of all workspaces, as of the checkpoint of the projection. One statement
   * reads both. Does nothing if a stream is parked, because its rows would lack events.
   */
  saveLive(queries: WorkspaceQueries): Promise<StoredSnapshot | undefined> {
    const at = this.#definition.writtenWithAppend
      ? `select public.antiphon_head_position() as position, epoch from log_head where id = 1`
      : `select c.position, h.epoch from projection_checkpoints c join log_head h on h.id = 1 and h.epoch = c.epoch where c.name = $1`;
    return this.#save(queries, ALL_WORKSPACES, at);
  }

  /** Copies the temporary rows of one workspace, in the caller's transaction. */
  saveFolded(
    queries: WorkspaceQueries,
    workspace: string,
    position: number,
  ): Promise<StoredSnapshot | undefined> {
    const at = `select ${BigInt(position)} as position, epoch from log_head where id = 1`;
    return this.#save(queries, workspace, at);
  }

  /** Fills the empty temporary tables from a snapshot. */
  async restore(queries: WorkspaceQueries, workspace: string, from: StoredSnapshot): Promise<void> {
    for (const { table, relation } of this.relations(from))
      await queries.query(
        `insert into ${shadowTable(table.name)} select * from ${relation} r where workspace = $1`,
        [workspace],
      );
  }

  /** Returns the tables of a snapshot, each with SQL of its rows there. */
  relations({
    scope,
    position,
  }: StoredSnapshot): readonly { readonly table: ProjectionTable; readonly relation: string }[] {
    return this.#copied().map((table) => ({
      table,
      relation: `(select r.* from public.projection_snapshot_rows s
        cross join lateral jsonb_populate_recordset(null::${liveTable(table.name)}, s.rows) r
        where s.projection = ${literal(this.#definition.name)} and s.scope = ${literal(scope)}
          and s.position = ${BigInt(position)} and s.table_name = ${literal(table.name)})`,
    }));
  }

  /** Deletes the snapshots of a scope, or of all with null, that are not in the list. */
  async keep(
    queries: WorkspaceQueries,
    scope: string | null,
    kept: readonly StoredSnapshot[],
  ): Promise<void> {
    const { name } = this.#definition;
    await queries.query(KEEP_SQL, [
      ...[name, scope],
      kept.map((one) => one.scope),
      kept.map(({ position }) => position),
    ]);
  }

  async #save(queries: WorkspaceQueries, scope: string, at: string): Promise<StoredSnapshot | undefined> {
    const { name } = this.#definition;
    const copies = this.#copied().map((table, index) => `copy_${index} as (${copySql(table)})`);
    const sql = `with at as (${at}), saved as (
        insert into projection_snapshots (projection, workspace, position, epoch, form, bytes)
        select $1, $2, position, epoch, $3, 0 from at where position > 0
          and not exists (select from log_archives) and not exists (select from projection_parked where projection = $1)
        on conflict do nothing returning position), ${copies.join(', ')}
      select $2::text as scope, position, 0 as bytes from saved`;
    const { rows } = await queries.query<Row>(sql, [name, scope, await this.#readForm(queries)]);
    const [saved] = rows.map(toStored);
    if (saved) await queries.query(SIZE_SQL, [name, scope, saved.position]);
    return saved;
  }

  #copied(): ProjectionTable[] {
    return this.#definition.tables.filter(({ positionColumn }) => positionColumn === undefined);
  }

  async #readForm(queries: WorkspaceQueries): Promise<string> {
    if (this.#form !== undefined) return this.#form;
    const tables = this.#copied().map(({ name }) => liveTable(name));
    const { rows } = await queries.query<{ form: string }>(FORM_SQL, [tables]);
    return (this.#form = rows[0]?.form ?? '');
  }
}

const copySql = ({ name, snapshotRows = 'true' }: ProjectionTable): string => {
  const table = pg.escapeIdentifier(name);
  return `insert into projection_snapshot_rows (projection, scope, position, workspace, table_name, part, rows)
    select $1, $2, s.position, r.workspace, ${literal(name)}, r.part, jsonb_agg(r.row) from saved s cross join (
      select workspace, to_jsonb(${table}) as row, (row_number() over (partition by workspace) - 1) / ${PART} as part
      from ${table} where ${snapshotRows}) r
    group by s.position, r.workspace, r.part`;
};

/**
 * Returns the snapshots to keep: in each scope the first one of each stride. While the sum is too
 * large, those of single workspaces go first, the lowest position first.
 */
export const thinOut = (
  all: readonly StoredSnapshot[],
  head: number,
  every = SNAPSHOT_EVERY,
): StoredSnapshot[] => {
  const newest = new Map(all.map(({ scope, bytes }) => [scope, bytes]));
  const seen = new Set<string>();
  const spaced = all.filter(({ scope, position }) => {
    const key = `${scope}\n${Math.floor(position / strideOf(head, newest.get(scope) ?? 0, every))}`;
    const isFirst = !seen.has(key);
    seen.add(key);
    return isFirst;
  });
  let bytes = spaced.reduce((sum, one) => sum + one.bytes, 0);
  const isShared = ({ scope }: StoredSnapshot): boolean => scope === ALL_WORKSPACES;
  const leaving = spaced.toSorted((a, b) => Number(isShared(a)) - Number(isShared(b)));
  while (bytes > MAX_BYTES) bytes -= leaving.shift()?.bytes ?? bytes;
  return leaving;
};
