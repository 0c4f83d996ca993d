import pg from 'pg';
import type { JsonObject } from '@antiphon/kernel';
import type { ProjectionTable } from './projection-definition.js';
import { liveTable, shadowTable } from './shadow-tables.js';

/** A row that the fold of the log makes otherwise. */
export interface RowDifference {
  readonly table: string;
  /** Columns of its primary key. */
  readonly key: JsonObject;
  /** `missing`: the log makes a row that is not there; `extra`: there is one that the log does not make. */
  readonly kind: 'missing' | 'extra' | 'other';
  /** Of `other`: the columns that differ. */
  readonly columns: readonly string[];
}

export interface TableComparison {
  /** Rows that the log makes. */
  readonly rows: number;
  readonly differing: number;
  /** The first of them, by key. */
  readonly first: readonly RowDifference[];
}

const NAMED_ROWS = 10;

const KEY_SQL = `select a.attname as name from pg_index i
  join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any (i.indkey)
  where i.indrelid = $1::regclass and i.indisprimary order by array_position(i.indkey, a.attnum)`;

/** The primary key's columns, quoted. */
export const keyColumns = async (client: pg.ClientBase, table: string): Promise<readonly string[]> => {
  const { rows } = await client.query<{ name: string }>(KEY_SQL, [liveTable(table)]);
  if (rows.length === 0) throw new Error(`the table ${table} has no primary key to name its rows by`);
  return rows.map(({ name }) => pg.escapeIdentifier(name));
};

const spoken = (table: string, { ignoredRows }: ProjectionTable): string =>
  `(select * from ${table}${ignoredRows === undefined ? '' : ` where not (${ignoredRows})`})`;

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

/** Holds a table against its shadow, row by row and column by column. */
export const compareTable = async (
  client: pg.ClientBase,
  table: ProjectionTable,
): Promise<TableComparison> => {
  const { name } = table;
  const keys = await keyColumns(client, name);
  const named = keys.map((key) => `'${key.slice(1, -1)}', ${key}`).join(', ');
  await client.query('set local enable_seqscan = on');
  const { rows: counted } = await client.query<{ rows: string }>(
    `select count(*) as rows from ${spoken(shadowTable(name), table)} s`,
  );
  const { rows } = await client.query<DifferingRow>(
    `select jsonb_build_object(${named}) as key, to_jsonb(l) as live, to_jsonb(s) as folded, count(*) over () as differing
     from ${spoken(liveTable(name), table)} l full join ${spoken(shadowTable(name), table)} s using (${keys.join(', ')})
     where l is distinct from s order by ${keys.join(', ')} limit ${NAMED_ROWS}`,
  );
  return {
    rows: Number(counted[0]?.rows ?? 0),
    differing: Number(rows[0]?.differing ?? 0),
    first: rows.map((row) => toDifference(name, row)),
  };
};

/** Makes a table equal to its shadow by changing the rows that differ, in the caller's transaction; answers how many. */
export const mendTable = async (client: pg.ClientBase, { name }: ProjectionTable): Promise<number> => {
  const [live, shadow] = [liveTable(name), shadowTable(name)];
  const same = (await keyColumns(client, name)).map((key) => `s.${key} = l.${key}`).join(' and ');
  await client.query('set local enable_seqscan = on');
  const removed = await client.query(
    `delete from ${live} l where not exists (select from ${shadow} s where ${same} and s is not distinct from l)`,
  );
  const added = await client.query(
    `insert into ${live} select * from ${shadow} s where not exists (select from ${live} l where ${same})`,
  );
  return Math.max(removed.rowCount ?? 0, added.rowCount ?? 0);
};
