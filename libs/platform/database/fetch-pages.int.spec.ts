import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { createTestDatabase } from '@antiphon/testing';
import type { TestDatabase } from '@antiphon/testing';
import { fetchPages, ROW_AS_JSON } from './fetch-pages.js';

let database: TestDatabase;
let client: pg.Client;

beforeEach(async () => {
  database = await createTestDatabase();
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
});
afterEach(async () => {
  await client.end();
  await database.drop();
});

const MIB = 2 ** 20;

describe('pages of a cursor', () => {
  it('hold 8 MiB, also where large rows follow small ones, and 64 rows at most', async () => {
    await client.query('begin');
    const rows = `select n, repeat('x', case when n between 301 and 340 or n % 90 = 0 then ${MIB} else 10 end) as line
      from generate_series(1, 700) n order by n`;
    const pages: { readonly rows: number; readonly bytes: number }[] = [];
    const read: number[] = [];
    const query = { name: 'pages', rows, bytes: 'length(r.line)' };
    for await (const page of fetchPages<{ n: number; line: string }>(client, query)) {
      read.push(...page.map(({ n }) => n));
      pages.push({ rows: page.length, bytes: page.reduce((sum, { line }) => sum + line.length, 0) });
    }
    expect(read).toEqual(Array.from({ length: 700 }, (_, at) => at + 1));
    expect(Math.max(...pages.map((page) => page.rows))).toBe(64);
    expect(Math.max(...pages.map((page) => page.bytes))).toBeLessThanOrEqual(8 * MIB);
    expect(pages.length).toBeLessThan(250);
  });

  it('hold one row that is larger than a page', async () => {
    await client.query('begin');
    const rows = `select repeat('x', ${9 * MIB}) as line from generate_series(1, 3)`;
    const pages: number[] = [];
    const query = { name: 'pages', rows, bytes: 'length(r.line)' };
    for await (const page of fetchPages<{ line: string }>(client, query)) pages.push(page.length);
    expect(pages).toEqual([1, 1, 1]);
  });

  it('write no temporary file, and return a row as the JSON of its table', async () => {
    await client.query(`create table texts (id integer, content text, bytes_ahead_not numeric);
      alter table texts alter content set storage external;
      insert into texts select n, repeat('x', 500000), 1.50 from generate_series(1, 200) n`);
    await client.query('begin');
    const used = async (): Promise<number> => {
      const { rows } = await client.query<{ bytes: string }>(
        'select coalesce(sum(size), 0) as bytes from pg_ls_tmpdir()',
      );
      return Number(rows[0]?.bytes);
    };
    const before = await used();
    const [table, line] = ['select * from texts order by id', `${ROW_AS_JSON} as line`];
    const query = { name: 'pages', rows: table, bytes: 'octet_length(r.content)', columns: line };
    const lines: string[] = [];
    for await (const page of fetchPages<{ line: string }>(client, query)) {
      lines.push(...page.map((row) => row.line.slice(-50)));
      expect(await used()).toBeLessThanOrEqual(before + MIB);
    }
    const { rows } = await client.query<{ line: string }>(
      'select right(to_jsonb(t)::text, 50) as line from texts t order by id',
    );
    expect(lines).toEqual(rows.map((row) => row.line));
  });
});
