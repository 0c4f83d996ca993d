import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { createTestDatabase, type TestDatabase } from '@antiphon/testing';

const FOLDER = fileURLToPath(new URL('../../../prisma/functions', import.meta.url));
const read = (name: string): string => readFileSync(join(FOLDER, `${name}.sql`), 'utf8');

const DEFINITIONS_SQL = `select p.proname as name,
    string_agg(pg_get_functiondef(p.oid), e'\\n' order by p.oid::regprocedure::text) as definition
  from pg_proc p where p.pronamespace = 'public'::regnamespace group by 1 order by 1`;

const TRIGGERS_SQL = `select pg_get_triggerdef(t.oid, true) || ';'
    || case t.tgenabled when 'O' then '' else format(e'\\n-- %s is in the state %s.', t.tgname, t.tgenabled) end as text
  from pg_trigger t join pg_class c on c.oid = t.tgrelid
  where c.relnamespace = 'public'::regnamespace and not t.tgisinternal order by c.relname, t.tgname`;

/** Operators are printed in brackets, other conditions are not. */
const inBrackets = (text: string): string =>
  `case when ${text} like '(%' then ${text} else '(' || ${text} || ')' end`;

const POLICIES_SQL = `select format('alter table %I enable row level security;', c.relname)
    || case when c.relforcerowsecurity then format(e'\\nalter table %I force row level security;', c.relname) else '' end
    || coalesce((
      select string_agg(e'\\n' || format('create policy %I on %I', p.policyname, c.relname)
        || case p.permissive when 'PERMISSIVE' then '' else ' as restrictive' end
        || case p.cmd when 'ALL' then '' else ' for ' || lower(p.cmd) end
        || case p.roles when '{public}' then '' else e'\\n  to ' || array_to_string(p.roles, ', ') end
        || coalesce(e'\\n  using ' || ${inBrackets('p.qual')}, '')
        || coalesce(e'\\n  with check ' || ${inBrackets('p.with_check')}, '') || ';',
        '' order by p.policyname)
      from pg_policies p where p.schemaname = 'public' and p.tablename = c.relname), '') as text
  from pg_class c where c.relnamespace = 'public'::regnamespace
    and (c.relrowsecurity or exists (select from pg_policy p where p.polrelid = c.oid)) order by c.relname`;

/** Conditions and storage of tables, which `prisma/schema` cannot describe. */
const TABLES_SQL = `select concat_ws(e'\\n',
    (select format('alter table %I set (%s);', c.relname, array_to_string(c.reloptions, ', ')) where c.reloptions is not null),
    (select string_agg(format('alter table %I add constraint %I %s;', c.relname, k.conname, pg_get_constraintdef(k.oid, true)),
        e'\\n' order by k.conname)
      from pg_constraint k where k.conrelid = c.oid and k.contype in ('c', 'x')),
    (select string_agg(replace(pg_get_indexdef(i.indexrelid), ' ON public.', ' ON ') || ';', e'\\n' order by i.indexrelid::regclass::text)
      from pg_index i where i.indrelid = c.oid and (i.indexprs is not null or i.indpred is not null))) as text
  from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') order by c.relname`;

/** Kinds of objects that the schema does not use, and for which no file exists. */
const OTHERS_SQL = `select c.relname as name from pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relkind not in ('r', 'i', 'I', 'p', 't')
  union all select t.typname from pg_type t where t.typnamespace = 'public'::regnamespace and t.typtype not in ('b', 'c')
  union all select r.rulename from pg_rewrite r join pg_class c on c.oid = r.ev_class
    where c.relnamespace = 'public'::regnamespace
  union all select p.proname from pg_proc p where p.pronamespace = 'public'::regnamespace and p.prokind <> 'f'
  union all select evtname from pg_event_trigger
  union all select extname from pg_extension where extname <> 'plpgsql'`;

/**
 * Functions with the rights of their owner that any role may execute, or whose search path a
 * caller may choose.
 */
const UNSAFE_SQL = `select p.proname as name from pg_proc p
  where p.pronamespace = 'public'::regnamespace and p.prosecdef and (
    'search_path=public, pg_temp' <> all (coalesce(p.proconfig, '{}'))
    or exists (select from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a where a.grantee = 0))`;

const LISTS = { triggers: TRIGGERS_SQL, policies: POLICIES_SQL, tables: TABLES_SQL } as const;
const FUNCTIONS = readdirSync(FOLDER)
  .filter((file) => file.endsWith('.sql'))
  .map((file) => file.slice(0, -'.sql'.length))
  .filter((name) => !(name in LISTS));

let database: TestDatabase;
let client: pg.Client;
let current: Readonly<Record<string, string>>;

/** Returns the definition of each function; overloads of one name are together. */
const readDefinitions = async (): Promise<Record<string, string>> => {
  const { rows } = await client.query<{ name: string; definition: string }>(DEFINITIONS_SQL);
  return Object.fromEntries(rows.map(({ name, definition }) => [name, definition]));
};

/** Returns all definitions as they are after the functions of a name are created by `sql` alone. */
const redefine = async (name: string, sql: string): Promise<Record<string, string>> => {
  await client.query('begin');
  try {
    const { rows } = await client.query<{ signature: string }>(
      `select oid::regprocedure::text as signature from pg_proc
        where pronamespace = 'public'::regnamespace and proname = $1`,
      [name],
    );
    for (const { signature } of rows) await client.query(`drop function ${signature} cascade`);
    await client.query(sql);
    return await readDefinitions();
  } finally {
    await client.query('rollback');
  }
};

beforeAll(async () => {
  database = await createTestDatabase();
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
  current = await readDefinitions();
}, 60_000);
afterAll(async () => {
  await client?.end();
  await database?.drop();
});

describe('a function of the migrated database', () => {
  it('has its file in prisma/functions, and each file has its function', () =>
    expect(FUNCTIONS.toSorted()).toEqual(Object.keys(current).toSorted()));

  it.each(FUNCTIONS)('has the body of prisma/functions/%s.sql', async (name) =>
    expect(await redefine(name, read(name))).toEqual(current),
  );

  it('with the rights of its owner has a search path, and only named roles execute it', async () =>
    expect((await client.query(UNSAFE_SQL)).rows).toEqual([]));

  it.each<readonly [string, (sql: string) => string]>([
    ['another statement', (sql) => sql.replace('return at;', 'return at + 0;')],
    ['another comment in the body', (sql) => sql.replace('Last of all locks', 'Last lock')],
    ['no setting for plans', (sql) => sql.replace('set jit = off\n', '')],
    ['the rights of its caller', (sql) => sql.replace(' security definer', '')],
    ['another argument', (sql) => sql.replace('p_expected bigint', 'p_expected integer')],
    ['a second form', (sql) => sql + sql.replace('p_data text', 'p_data jsonb')],
    ['no function', () => ''],
  ])('differs from a file with %s', async (_difference, change) => {
    const name = 'antiphon_append_event';
    expect(change(read(name))).not.toBe(read(name));
    expect(await redefine(name, change(read(name)))).not.toEqual(current);
  });
});

describe('the migrated database', () => {
  it.each(Object.entries(LISTS))('has the %s of the list in prisma/functions', async (list, sql) => {
    const { rows } = await client.query<{ text: string }>(sql);
    const texts = rows.map(({ text }) => `${text}\n`).filter((text) => text !== '\n');
    const header = read(list).split('\n\n')[0] ?? '';
    if (process.env['ANTIPHON_WRITE_LISTS'])
      writeFileSync(join(FOLDER, `${list}.sql`), `${header}\n\n${texts.join('\n')}`);
    expect(`${header}\n\n${texts.join('\n')}`).toBe(read(list));
  });

  it('has no view, sequence, type, rule or extension, which would need a file', async () =>
    expect((await client.query(OTHERS_SQL)).rows).toEqual([]));
});
