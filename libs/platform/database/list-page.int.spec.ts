import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { createTestDatabase } from '@antiphon/testing';
import type { TestDatabase } from '@antiphon/testing';
import { cutListPage, type ListedRow, listPageSql } from './list-page.js';

const MIB = 2 ** 20;
let database: TestDatabase;
let client: pg.Client;
beforeAll(async () => {
  database = await createTestDatabase();
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
});
afterAll(async () => {
  await client.end();
  await database.drop();
});

interface Row extends ListedRow {
  readonly n: number;
  readonly text: string;
}

/** Reads a list of 1 to 60 whose rows from 20 to 26 have some bytes, in pages. */
const readAll = async (bytes: number, limit: number): Promise<Row[][]> => {
  const rows = `select n, repeat('x', case when n between 20 and 26 then ${bytes} else 10 end) as text
    from generate_series(1, 60) n where n > $1 order by n limit $2`;
  const sql = listPageSql(rows, 'octet_length(r.text)');
  const pages: Row[][] = [];
  for (let after = 0, hasNext = true; hasNext;) {
    const page = cutListPage((await client.query<Row>(sql, [after, limit + 1])).rows, limit);
    if (page.shown.length > 0) pages.push([...page.shown]);
    after = page.shown.at(-1)?.n ?? Infinity;
    hasNext = page.hasMore;
  }
  return pages;
};

describe('a page of a list', () => {
  it.each([
    [MIB, 50],
    [MIB, 3],
    [5 * MIB, 50],
    [10, 60],
    [10, 20],
  ])(
    'has all rows once, and 4 MiB or one row, with rows of %s bytes and a limit of %s',
    async (bytes, limit) => {
      const pages = await readAll(bytes, limit);
      expect(pages.flat().map(({ n }) => n)).toEqual(Array.from({ length: 60 }, (_, at) => at + 1));
      for (const page of pages) {
        expect(page.length).toBeLessThanOrEqual(limit);
        const size = page.reduce((sum, { text }) => sum + text.length, 0);
        expect(page.length === 1 || size <= 4 * MIB).toBe(true);
      }
    },
  );

  it('says that no row follows where none does', () => {
    expect(cutListPage([], 10)).toEqual({ shown: [], hasMore: false });
    const rows = [{ bytes_so_far: '10' }, { bytes_so_far: '20' }];
    expect(cutListPage(rows, 2)).toEqual({ shown: rows, hasMore: false });
    expect(cutListPage(rows, 1)).toEqual({ shown: rows.slice(0, 1), hasMore: true });
  });
});
