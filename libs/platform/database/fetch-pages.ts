import type pg from 'pg';

/** Bytes of a page; one row may have more. */
const PAGE_BYTES = 8 * 1024 * 1024;
const PAGE_ROWS = 64;

/** Rows of a query, to be read through a cursor. */
export interface PagedQuery {
  /** Name of the cursor, unique in its transaction. */
  readonly name: string;
  /** SQL of the rows, in their order. */
  readonly rows: string;
  /** SQL of the bytes of a row `r`. Default: rows are small, and only their number counts. */
  readonly bytes?: string;
  /** SQL of the columns of a row `r`. Default: all. */
  readonly columns?: string;
  readonly values?: readonly unknown[];
}

/** SQL of the text of a row `r` as JSON. */
export const ROW_AS_JSON = `(to_jsonb(r) - 'bytes_ahead')::text`;

/**
 * Reads a query through a server-side cursor, in pages of up to 64 rows that together have 8 MiB,
 * or of a single row. Each row tells the bytes of the rows after it, so that no page is fetched
 * before its size is known. Requires a transaction.
 */
export async function* fetchPages<Row extends pg.QueryResultRow>(
  client: pg.ClientBase,
  { name, rows: sql, bytes = '0', columns = 'r.*', values = [] }: PagedQuery,
): AsyncGenerator<Row[], void, undefined> {
  const ahead = `sum((${bytes})::bigint) over (rows between 1 following and ${PAGE_ROWS} following)`;
  await client.query(
    `declare ${name} no scroll cursor for
       select ${columns}, coalesce(bytes_ahead, 0) > ${PAGE_BYTES} as is_large_ahead
       from (select r.*, ${ahead} as bytes_ahead from (${sql}) r) r`,
    [...values],
  );
  for (let count = 1; ;) {
    const { rows } = await client.query<Row & { is_large_ahead: boolean }>(`fetch ${count} from ${name}`);
    if (rows.length === 0) break;
    yield rows;
    count = rows.at(-1)?.is_large_ahead === true ? 1 : PAGE_ROWS;
  }
  await client.query(`close ${name}`);
}
