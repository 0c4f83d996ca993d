import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { createTestDatabase, DATABASE_ROLES } from '@antiphon/testing';
import type { DatabaseRole, TestDatabase } from '@antiphon/testing';
import { createPipelinedPool, createPool, inTransaction } from './pool.js';
import { acrossWorkspaces, inWorkspace, queryInWorkspace } from './workspace.js';

let database: TestDatabase;
let admin: pg.Client;
const pools = new Map<DatabaseRole, pg.Pool>();
const poolOf = (role: DatabaseRole): pg.Pool => pools.get(role) as pg.Pool;

/** Literals of a type that every column of the schema accepts. */
const LITERALS: Readonly<Record<string, string>> = {
  int2: '1',
  int4: '1',
  int8: '1',
  float8: '0.5',
  uuid: 'gen_random_uuid()',
  jsonb: `'{}'`,
  timestamptz: 'now()',
  bytea: `gen_random_uuid()::text::bytea`,
  bool: 'false',
  _text: `'{}'`,
  _int8: `'{}'`,
};
const SPECIAL: Readonly<Record<string, string>> = {
  'api_keys.status': `'active'`,
  'budget_reservations.status': `'reserved'`,
  'events.position': `(select coalesce(max(position), 0) + 1 from events)`,
};

interface Column {
  readonly table: string;
  readonly column: string;
  readonly type: string;
}

const COLUMNS_SQL = `select c.relname as "table", a.attname as "column", t.typname as type
  from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
  join pg_type t on t.oid = a.atttypid
  where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
    and exists (select from pg_attribute w where w.attrelid = c.oid and w.attname = 'workspace' and not w.attisdropped)
  order by c.relname, a.attnum`;

const readTables = async (): Promise<Map<string, Column[]>> => {
  const { rows } = await admin.query<Column>(COLUMNS_SQL);
  const tables = new Map<string, Column[]>();
  for (const row of rows) tables.set(row.table, [...(tables.get(row.table) ?? []), row]);
  return tables;
};

/** Inserts one row of a workspace, as the superuser, with a value for each column. */
const seed = (table: string, columns: readonly Column[], workspace: string): Promise<unknown> => {
  const values = columns.map(({ column, type }) => {
    if (column === 'workspace') return pg.escapeLiteral(workspace);
    return SPECIAL[`${table}.${column}`] ?? LITERALS[type] ?? `'x-' || gen_random_uuid()`;
  });
  const names = columns.map(({ column }) => pg.escapeIdentifier(column)).join(', ');
  return admin.query(`insert into ${pg.escapeIdentifier(table)} (${names}) values (${values.join(', ')})`);
};

type Seen = readonly string[] | 'no grant';

/** Returns the workspaces whose rows the role reads. */
const workspacesSeen = async (
  db: Pick<pg.Pool, 'query'> | ReturnType<typeof inWorkspace>,
  table: string,
): Promise<Seen> => {
  try {
    const { rows } = await (db as pg.Pool).query<{ workspace: string }>(
      `select distinct workspace from ${table} order by 1`,
    );
    return rows.map(({ workspace }) => workspace);
  } catch (error) {
    if ((error as { code?: string }).code === '42501') return 'no grant';
    throw error;
  }
};

beforeAll(async () => {
  database = await createTestDatabase();
  admin = new pg.Client({ connectionString: database.url });
  await admin.connect();
  for (const [table, columns] of await readTables())
    for (const workspace of ['a', 'b']) await seed(table, columns, workspace);
  for (const role of DATABASE_ROLES)
    pools.set(role, createPool({ url: database.urlFor(role), applicationName: 'spec', max: 2 }));
}, 60_000);
afterAll(async () => {
  for (const pool of pools.values()) await pool.end();
  await admin?.end();
  await database?.drop();
}, 60_000);

describe('row-level security', () => {
  it('covers every table with a workspace, so that a new table without a policy fails here', async () => {
    const { rows } = await admin.query<{ name: string }>(
      `select c.relname as name from pg_class c
       where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
         and exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'workspace' and not a.attisdropped)
         and not (c.relrowsecurity and exists (select from pg_policy p where p.polrelid = c.oid and p.polpermissive))`,
    );
    expect(rows).toEqual([]);
    expect((await readTables()).size).toBeGreaterThanOrEqual(16);
  });

  it.each(DATABASE_ROLES)(
    'lets %s read no row without a workspace, and no row of another one',
    async (role) => {
      const leaks: unknown[] = [];
      for (const table of (await readTables()).keys()) {
        const pool = poolOf(role);
        const none = await workspacesSeen(pool, table);
        const own = await workspacesSeen(inWorkspace(pool, 'a'), table);
        if (none !== 'no grant' && none.length > 0) leaks.push({ table, without: none });
        if (own !== 'no grant' && own.some((workspace) => workspace !== 'a')) leaks.push({ table, own });
      }
      expect(leaks).toEqual([]);
    },
  );

  it.each(DATABASE_ROLES)('lets %s read all workspaces only if it is a system reader', async (role) => {
    const tables = [...(await readTables()).keys()];
    const seen = await Promise.all(
      tables.map((table) => workspacesSeen(acrossWorkspaces(poolOf(role)), table)),
    );
    const all = seen.filter((one) => one !== 'no grant' && one.length === 2);
    if (role === 'gateway' || role === 'sandbox') expect(all).toEqual([]);
    if (role === 'reader') expect(seen.filter((one) => one !== 'no grant')).toEqual(all);
    if (['agent', 'metering', 'memory', 'reader'].includes(role)) expect(all.length).toBeGreaterThan(0);
  });

  it('lets the sandbox read the log, and write its modules, values and requests alone', async () => {
    const granted = async (privileges: string) => {
      const { rows } = await admin.query<{ name: string }>(
        `select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v')
           and has_table_privilege('antiphon_sandbox', oid, $1) order by 1`,
        [privileges],
      );
      return rows.map(({ name }) => name);
    };
    const own = ['plugin_modules', 'plugin_values'];
    const sends = 'channel_sends';
    expect(await granted('select')).toEqual(['archived_streams', sends, 'events', ...own, 'stream_heads']);
    expect(await granted('insert, update, delete, truncate')).toEqual([sends, ...own]);
  });

  it('refuses a row of another workspace on insert', async () => {
    const text = `insert into provider_breakers (workspace, provider, failures, failed_at) values ($1, 'p', 1, now())`;
    const agent = inWorkspace(poolOf('agent'), 'a');
    await expect(agent.query(text, ['b'])).rejects.toMatchObject({ code: '42501' });
    expect((await agent.query(text, ['a'])).rowCount).toBe(1);
  });
});

describe('the workspace of a statement', () => {
  const COUNT = 'select count(*)::int as n, $1::text as echo from events';

  it('ends with the statement, also for a prepared one', async () => {
    const pool = createPool({ url: database.urlFor('gateway'), applicationName: 'spec', max: 1 });
    const config = { name: 'spec_count', text: COUNT, values: ['x'] };
    for (let round = 0; round < 3; round++) {
      expect((await inWorkspace(pool, 'a').query(config)).rows).toEqual([{ n: 1, echo: 'x' }]);
      expect((await inWorkspace(pool, 'c').query(config)).rows).toEqual([{ n: 0, echo: 'x' }]);
      expect((await pool.query(config)).rows).toEqual([{ n: 0, echo: 'x' }]);
    }
    await pool.end();
  });

  it('survives errors and statements without rows', async () => {
    const pool = createPool({ url: database.urlFor('gateway'), applicationName: 'spec', max: 1 });
    const a = inWorkspace(pool, 'a');
    await expect(a.query('select 1 / (select 0)')).rejects.toMatchObject({ code: '22012' });
    await expect(a.query({ name: 'spec_bad', text: 'select nothing' })).rejects.toMatchObject({
      code: '42703',
    });
    await expect(a.query({ name: 'spec_bad', text: 'select nothing' })).rejects.toMatchObject({
      code: '42703',
    });
    expect((await a.query('select from events where false')).rows).toEqual([]);
    expect((await a.query('select workspace from events')).rows).toEqual([{ workspace: 'a' }]);
    await pool.end();
  });

  it('keeps pipelined statements of several workspaces apart', async () => {
    const pool = createPipelinedPool(poolOf('gateway'), { prelude: 'set jit = off' });
    const results = await Promise.all(
      Array.from({ length: 60 }, (_, i) =>
        inWorkspace(pool, ['a', 'b', 'c'][i % 3] ?? '').query<{ workspace: string }>({
          ...{ name: 'spec_workspaces', text: 'select workspace from events' },
        }),
      ),
    );
    const seen = results.map(({ rows }) => rows.map(({ workspace }) => workspace).join());
    expect(seen).toEqual(Array.from({ length: 60 }, (_, i) => ['a', 'b', ''][i % 3]));
    await pool.end();
  });

  it('is that of the transaction for a client on loan', async () => {
    const count = async (client: pg.ClientBase) =>
      (await client.query<{ workspace: string }>('select workspace from events')).rows.length;
    expect(await inTransaction(poolOf('agent'), count)).toBe(2);
    expect(await inTransaction(poolOf('agent'), count, 'a')).toBe(1);
    const client = await poolOf('agent').connect();
    const found = await queryInWorkspace(client, 'b', { text: 'select workspace from events' });
    expect(found.rows).toEqual([{ workspace: 'b' }]);
    expect(await count(client)).toBe(0);
    client.release();
  });
});
