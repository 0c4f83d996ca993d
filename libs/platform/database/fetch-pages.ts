import type pg from 'pg';

/** Bytes of a page; one row may have more. */
const PAGE_BYTES = 8 * 1024 * 1024;
/** Maximum number of rows of a page: large rows after small ones do not fill the memory. */
const MAX_ROWS = 64;
const FIRST_ROWS = 8;

/**
 * Fetches the rows of an open cursor in pages of about 8 MiB, and of 64 rows at most. The number of
 * rows follows the largest row of the page before.
 */
export async function* fetchPages<Row extends pg.QueryResultRow>(
  client: pg.ClientBase,
  cursor: string,
  sizeOf: (row: Row) => number,
  maxRows = MAX_ROWS,
): AsyncGenerator<Row[], void, undefined> {
  let count = Math.min(FIRST_ROWS, maxRows);
  for (;;) {
    const { rows } = await client.query<Row>(`fetch ${count} from ${cursor}`);
    if (rows.length === 0) return;
    const largest = rows.reduce((max, row) => Math.max(max, sizeOf(row)), 1);
    yield rows;
    const fitting = Math.floor(PAGE_BYTES / largest);
    count = Math.max(1, Math.min(maxRows, count * 2, fitting));
  }
}
