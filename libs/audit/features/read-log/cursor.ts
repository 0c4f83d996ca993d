import type pg from 'pg';

const PAGE = 1_000;

/** Rows of a query through a server-side cursor, a page at a time. Inside a transaction; `name` is unique in it. */
export async function* rowsOf<Row extends pg.QueryResultRow>(
  client: pg.ClientBase,
  name: string,
  sql: string,
): AsyncGenerator<Row, void, undefined> {
  await client.query(`declare ${name} no scroll cursor for ${sql}`);
  for (;;) {
    const { rows } = await client.query<Row>(`fetch ${PAGE} from ${name}`);
    if (rows.length === 0) break;
    yield* rows;
  }
  await client.query(`close ${name}`);
}
