import pg from 'pg';
import type { JsonObject } from '@antiphon/kernel';
import type { ProjectionTable } from '../projection-definition.js';
import { liveTable, shadowTable } from './shadow-tables.js';

/** A row that differs from the fold of the log. */
export interface RowDifference {
  readonly table: string;
  /** Columns of its primary key. */
  readonly key: JsonObject;
  /** Only the fold has a `missing` row, only the live table an `extra` one; both have `other`. */
  readonly kind: 'missing' | 'extra' | 'other';
  /** Columns that differ; only of `other`. */
  readonly columns: readonly string[];
}

export interface TableComparison {
  /** Number of rows in the fold. */
  readonly rows: number;
  readonly differing: number;
  /** The first differing rows by key. */
  readonly first: readonly RowDifference[];
}

const NAMED_ROWS = 10;

const KEY_SQL = `select a.attname as name from pg_index i
  join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any (i.indkey)
  where i.indrelid = $1::regclass and i.indisprimary order by array_position(i.indkey, a.attnum)`;

/** Reads the columns of a table's primary key, quoted. */
const readKeyColumns = async (client: pg.ClientBase, table: string): Promise<readonly string[]> => {
  const { rows } = await client.query<{ name: string }>(KEY_SQL, [liveTable(table)]);
  if (rows.length === 0) throw new Error(`the table ${table} has no primary key to name its rows by`);
  return rows.map(({ name }) => pg.escapeIdentifier(name));
};

/** Returns SQL of the rows that count. The condition names the table, so that it is the alias. */
const withoutIgnoredRows = (relation: string, { name, ignoredRows }: ProjectionTable): string =>
  `(select * from ${relation} as ${pg.escapeIdentifier(name)}${ignoredRows === undefined ? '' : ` where not (${ignoredRows})`})`;

interface DifferingRow {
  readonly key: JsonObject;
  readonly live: JsonObject | null;
  readonly folded: JsonObject | null;
  readonly differing: string;
}

const toDifference = (table: string, { key, live, folded }: DifferingRow): RowDifference => {
  if (live === null) return { table, key, kind: 'missing', columns: [] };
  if (folded === null) return { table, key, kind: 'extra', columns: [] };
  const columns = Object.keys(folded).filter(
    (column) => JSON.stringify(folded[column]) !== JSON.stringify(live[column]),
  );
  return { table, key, kind: 'other', columns };
};

/** Rows that are compared with the shadow of a table. Default: the live table. */
export interface ComparedRows {
  /** SQL of a relation with the columns of the table. */
  readonly relation: string;
  /** SQL condition over the rows of the shadow that the relation should have. */
  readonly condition: string;
}

/** Compares a table with its shadow, row by row and column by column. */
export const compareTable = async (
  client: pg.ClientBase,
  table: ProjectionTable,
  compared?: ComparedRows,
): Promise<TableComparison> => {
  const { name } = table;
  const keys = await readKeyColumns(client, name);
  const keyFields = keys.map((key) => `'${key.slice(1, -1)}', ${key}`).join(', ');
  const live = withoutIgnoredRows(compared?.relation ?? liveTable(name), table);
  const shadow = withoutIgnoredRows(
    compared
      ? `(select * from ${shadowTable(name)} as ${pg.escapeIdentifier(name)} where ${compared.condition})`
      : shadowTable(name),
    table,
  );
  await client.query('set local enable_seqscan = on');
  const { rows: counted } = await client.query<{ rows: string }>(`select count(*) as rows from ${shadow} s`);
  const { rows } = await client.query<DifferingRow>(
    `select jsonb_build_object(${keyFields}) as key, to_jsonb(l) as live, to_jsonb(s) as folded, count(*) over () as differing
     from ${live} l full join ${shadow} s using (${keys.join(', ')})
     where l is distinct from s order by ${keys.join(', ')} limit ${NAMED_ROWS}`,
  );
  return {
    rows: Number(counted[0]?.rows ?? 0),
    differing: Number(rows[0]?.differing ?? 0),
    first: rows.map((row) => toDifference(name, row)),
  };
};

/**
 * Repairs a table in the caller's transaction: changes the rows that differ from its shadow.
 * Returns their number.
 */
export const repairTable = async (client: pg.ClientBase, table: ProjectionTable): Promise<number> => {
  const { name } = table;
  const [live, shadow] = [liveTable(name), shadowTable(name)];
  const hasSameKey = (await readKeyColumns(client, name)).map((key) => `s.${key} = l.${key}`).join(' and ');
  await client.query('set local enable_seqscan = on');
  const removed = await client.query(
    `delete from ${live} l where not exists (select from ${shadow} s where ${hasSameKey} and s is not distinct from l)`,
  );
  const added = await client.query(
    `insert into ${live} select * from ${withoutIgnoredRows(shadow, table)} s where not exists (select from ${live} l where ${hasSameKey})`,
  );
  return Math.max(removed.rowCount ?? 0, added.rowCount ?? 0);
};
