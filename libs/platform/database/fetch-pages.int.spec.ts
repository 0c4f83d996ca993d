import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { createTestDatabase } from '@antiphon/testing';
import type { TestDatabase } from '@antiphon/testing';
import { fetchPages } from './fetch-pages.js';

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
  it('hold 8 MiB of large rows, and 64 rows at most', async () => {
    await client.query('begin');
    await client.query(
      `declare pages no scroll cursor for select repeat('x', case when n > 500 then ${MIB} else 10 end) as line
       from generate_series(1, 700) n`,
    );
    const pages: number[] = [];
    let rows = 0;
    for await (const page of fetchPages<{ line: string }>(client, 'pages', ({ line }) => line.length)) {
      rows += page.length;
      expect(page.length).toBeLessThanOrEqual(64);
      pages.push(page.reduce((sum, { line }) => sum + line.length, 0));
    }
    expect(rows).toBe(700);
    // Only the first page with large rows may have more: its size follows the small rows before it.
    const large = pages.filter((bytes) => bytes > MIB).slice(1);
    expect(large.length).toBeGreaterThan(10);
    for (const bytes of large) expect(bytes).toBeLessThanOrEqual(9 * MIB);
  });
});
