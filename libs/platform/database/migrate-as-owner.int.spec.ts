import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { createPool, migrate, withRole } from '@antiphon/database';
import { createTestDatabase, DATABASE_ROLES, type TestDatabase } from '@antiphon/testing';

const MIGRATIONS = fileURLToPath(new URL('../../../prisma/migrations', import.meta.url));

describe('a database whose owner is no superuser', () => {
  const owner = `antiphon_spec_${randomBytes(4).toString('hex')}`;
  let database: TestDatabase;
  let admin: pg.Client;
  let url: string;
  beforeAll(async () => {
    // The clone ensures that the roles exist, as an earlier migration of the cluster would.
    database = await createTestDatabase();
    admin = new pg.Client({ connectionString: database.url });
    await admin.connect();
    await admin.query(`create role ${owner} login createrole password 'spec'`);
    for (const role of DATABASE_ROLES)
      await admin.query(`grant antiphon_${role} to ${owner} with admin option`);
    await admin.query(`create database ${owner} owner ${owner}`);
    const own = new URL(database.url);
    own.username = owner;
    own.password = 'spec';
    own.pathname = `/${owner}`;
    url = own.href;
  }, 60_000);
  afterAll(async () => {
    await admin.query(`drop database ${owner} with (force)`);
    for (const role of DATABASE_ROLES) await admin.query(`revoke antiphon_${role} from ${owner} cascade`);
    await admin.query(`drop role ${owner}`);
    await admin.end();
    await database.drop();
  }, 60_000);

  it('accepts the migrations and serves each service under its role', async () => {
    expect((await migrate(url, MIGRATIONS)).length).toBeGreaterThan(0);
    for (const role of DATABASE_ROLES) {
      const pool = createPool({ url: withRole(url, `antiphon_${role}`), applicationName: 'spec' });
      const { rows } = await pool.query(
        `select current_user as role, has_table_privilege('events', 'select') as reads`,
      );
      await pool.end();
      expect(rows).toEqual([{ role: `antiphon_${role}`, reads: true }]);
    }
  });
});
