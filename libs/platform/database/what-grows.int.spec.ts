import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { createTestDatabase } from '@antiphon/testing';
import type { TestDatabase } from '@antiphon/testing';

const OPERATIONS = fileURLToPath(new URL('../../../docs/operations.md', import.meta.url));

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
}, 60_000);
afterAll(() => database?.drop());

describe('the table "What grows" of docs/operations.md', () => {
  it('has a retention rule for every table of the schema, and no other', async () => {
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    const { rows } = await client.query<{ name: string }>(
      `select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
         and relname <> '_prisma_migrations'`,
    );
    await client.end();
    const text = await readFile(OPERATIONS, 'utf8');
    const [, section = ''] = text.split('## What grows');
    const documented = [...(section.split('\n## ')[0] ?? '').matchAll(/^\| (`[^|]+`) +\| (.+) \|$/gm)];
    for (const [, , rule] of documented) expect(rule?.trim()).not.toBe('');
    const names = documented.flatMap(([, cell = '']) =>
      [...cell.matchAll(/`(\w+)`/g)].map(([, name]) => name),
    );
    expect(names.sort()).toEqual(rows.map(({ name }) => name).sort());
  });
});
