import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { createTestDatabase } from '@antiphon/testing';
import type { TestDatabase } from '@antiphon/testing';

const LIST = fileURLToPath(new URL('../../../prisma/functions/grants.txt', import.meta.url));

/** Tables of the log and of the platform, which several services use by design (docs/adr/0009). */
const SHARED = new Set([
  ...[
    'events',
    'stream_heads',
    'log_head',
    'log_roots',
    'archived_streams',
    'archive_requests',
    'log_archives',
  ],
  ...[
    'leases',
    'lease_floor',
    'idempotency',
    'category_owners',
    'projection_checkpoints',
    'projection_parked',
  ],
  ...['session_snapshots', 'work_starts', 'file_blobs', 'projection_snapshots', 'projection_snapshot_rows'],
]);

/** Service of a table, by the beginning of its name. */
const OWNERS: readonly (readonly [prefix: string, service: string])[] = [
  ['agent_', 'agent'],
  ['file_tree', 'agent'],
  ['provider_', 'agent'],
  ['budget_', 'metering'],
  ['memory_', 'memory'],
  ['log_rates', 'memory'],
  ['plugin_', 'sandbox'],
  ['channel_', 'sandbox'],
  ['workspaces', 'gateway'],
  ['api_keys', 'gateway'],
];
const SERVICES = ['gateway', 'agent', 'metering', 'memory', 'sandbox'];

const GRANTS_SQL = `select r.rolname as role, c.relname as object,
    string_agg(distinct lower(a.privilege_type), ' ' order by lower(a.privilege_type)) as privileges
  from pg_class c, lateral aclexplode(c.relacl) a join pg_roles r on r.oid = a.grantee
  where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v', 'S') and r.rolname like 'antiphon\\_%'
    and a.grantee <> c.relowner
  group by 1, 2
  union all
  select r.rolname, c.relname || '.' || t.attname, string_agg(distinct lower(a.privilege_type), ' ' order by lower(a.privilege_type))
  from pg_attribute t join pg_class c on c.oid = t.attrelid, lateral aclexplode(t.attacl) a
    join pg_roles r on r.oid = a.grantee
  where c.relnamespace = 'public'::regnamespace and r.rolname like 'antiphon\\_%'
  group by 1, 2
  union all
  select r.rolname, p.proname || '()', 'execute' from pg_proc p, lateral aclexplode(p.proacl) a
    join pg_roles r on r.oid = a.grantee
  where p.pronamespace = 'public'::regnamespace and r.rolname like 'antiphon\\_%' and a.grantee <> p.proowner
  group by 1, 2
  order by 1, 2`;

interface Grant {
  readonly role: string;
  readonly object: string;
  readonly privileges: string;
}

let database: TestDatabase;
let grants: readonly Grant[];
beforeAll(async () => {
  database = await createTestDatabase();
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  ({ rows: grants } = await client.query<Grant>(GRANTS_SQL));
  await client.end();
}, 60_000);
afterAll(() => database?.drop());

describe('the grants of the migrated database', () => {
  it('are those of prisma/functions/grants.txt', () => {
    const lines = grants.map(({ role, object, privileges }) => `${role} ${object}: ${privileges}`);
    if (process.env['ANTIPHON_WRITE_LISTS']) writeFileSync(LIST, `${lines.join('\n')}\n`);
    expect(lines).toEqual(readFileSync(LIST, 'utf8').trim().split('\n'));
  });

  it('let no service read or write a table of another one', () => {
    const foreign = grants.filter(({ role, object }) => {
      const service = role.replace('antiphon_', '');
      const [table = ''] = object.split('.');
      if (object.endsWith('()') || SHARED.has(table) || !SERVICES.includes(service)) return false;
      return OWNERS.find(([prefix]) => table.startsWith(prefix))?.[1] !== service;
    });
    expect(foreign).toEqual([]);
  });
});
