import { createHash, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { migrate, readMigrations, withRole } from '@antiphon/database';

/** Folder of the migrations, as seen from this file and from its build. */
const MIGRATIONS_DIR = ['../../prisma/migrations', '../../../prisma/migrations']
  .map((path) => fileURLToPath(new URL(path, import.meta.url)))
  .find(existsSync);
/** Advisory lock under which a process creates a template. */
const TEMPLATE_LOCK = 4_711_002;

export const DATABASE_ROLES = [
  'gateway',
  'agent',
  'sandbox',
  'metering',
  'memory',
  'reader',
  'archiver',
] as const;
export type DatabaseRole = (typeof DATABASE_ROLES)[number];

export interface TestDatabase {
  readonly name: string;
  /** Address with the superuser. */
  readonly url: string;
  /** Returns the address with the role, and only the privileges, of one service. */
  urlFor(role: DatabaseRole): string;
  /** Closes every connection and drops the database. */
  drop(): Promise<void>;
}

const adminUrl = (): string => {
  const url = process.env['ANTIPHON_TEST_DATABASE_URL'];
  if (!url)
    throw new Error(
      'ANTIPHON_TEST_DATABASE_URL is not set: run the spec with `npm test`, whose set-up starts PostgreSQL',
    );
  return url;
};

const urlOf = (database: string): string => {
  const url = new URL(adminUrl());
  url.pathname = `/${database}`;
  return url.href;
};

const asAdmin = async <T>(work: (client: pg.Client) => Promise<T>): Promise<T> => {
  const client = new pg.Client({ connectionString: adminUrl() });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
};

const createTemplate = async (client: pg.Client, template: string, migrationsDir: string): Promise<void> => {
  await client.query('select pg_advisory_lock($1)', [TEMPLATE_LOCK]);
  const { rows } = await client.query<{ datistemplate: boolean }>(
    'select datistemplate from pg_database where datname = $1',
    [template],
  );
  if (rows[0]?.datistemplate) return;
  // A database that is not marked as a template was left incomplete by a killed run.
  await client.query(`drop database if exists "${template}" with (force)`);
  await client.query(`create database "${template}"`);
  await migrate(urlOf(template), migrationsDir);
  await client.query(`alter database "${template}" with is_template true allow_connections false`);
};

let templateReady: Promise<string> | undefined;

const ensureTemplate = async (): Promise<string> => {
  if (MIGRATIONS_DIR === undefined) throw new Error('prisma/migrations was not found next to libs/testing');
  const migrationsDir = MIGRATIONS_DIR;
  const hash = createHash('sha256');
  for (const { name, checksum } of await readMigrations(migrationsDir)) hash.update(`${name} ${checksum}\n`);
  const template = `antiphon_template_${hash.digest('hex').slice(0, 16)}`;
  await asAdmin((client) => createTemplate(client, template, migrationsDir));
  return template;
};

/**
 * Creates a migrated database for one spec by cloning a template (some 50 ms). The template is
 * migrated once for each content of `prisma/migrations`. Drop the database in `afterAll`.
 */
export const createTestDatabase = async (): Promise<TestDatabase> => {
  const template = await (templateReady ??= ensureTemplate());
  const name = `antiphon_test_${randomBytes(6).toString('hex')}`;
  await asAdmin((client) => client.query(`create database "${name}" template "${template}"`));
  const url = urlOf(name);
  return {
    name,
    url,
    urlFor: (role) => withRole(url, `antiphon_${role}`),
    drop: () =>
      asAdmin(async (client) => void (await client.query(`drop database if exists "${name}" with (force)`))),
  };
};
