/** Bytes of the rows of a list's page. A reply with them fits into one message. */
const LIST_BYTES = 4 * 1024 * 1024;

/** A row with the bytes of the page up to and with it. */
export interface ListedRow {
  readonly bytes_so_far: string;
}

/**
 * Returns SQL for the page of a list, which has `bytes` of a row `r` (SQL). `rows` is the query of
 * one row more than the page may have. It is cut after the row that exceeds the bytes of a page.
 */
export const listPageSql = (rows: string, bytes: string): string =>
  `select * from (select r.*, sum((${bytes})::bigint) over (rows unbounded preceding) as bytes_so_far from (${rows}) r) r
    where bytes_so_far - (${bytes}) <= ${LIST_BYTES}`;

export interface ListPage<Row> {
  readonly shown: readonly Row[];
  /** True if a further page follows. */
  readonly hasMore: boolean;
}

/** Returns the rows of `listPageSql` that belong to the page, at least one if there is one. */
export const cutListPage = <Row extends ListedRow>(rows: readonly Row[], limit: number): ListPage<Row> => {
  const isOver = Number(rows.at(-1)?.bytes_so_far ?? 0) > LIST_BYTES;
  const count = Math.min(limit, isOver ? Math.max(1, rows.length - 1) : rows.length);
  return { shown: rows.slice(0, count), hasMore: isOver || rows.length > count };
};
