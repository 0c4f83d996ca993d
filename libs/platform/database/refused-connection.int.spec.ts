import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '@antiphon/testing';
import type pg from 'pg';
import { createPool, translateDatabaseError } from '@antiphon/database';

let database: TestDatabase;
let admin: pg.Pool;
beforeAll(async () => {
  database = await createTestDatabase();
  const maintenance = new URL(database.url);
  maintenance.pathname = '/postgres';
  admin = createPool({ url: maintenance.href, applicationName: 'spec-admin' });
});
afterAll(async () => {
  await admin.query(`alter database "${nameOf(database.url)}" allow_connections true`);
  await admin.end();
  await database.drop();
});

const nameOf = (url: string): string => new URL(url).pathname.slice(1);

/** Returns the error of a first query, as services translate it. */
const failureAt = async (url: string): Promise<unknown> => {
  const pool = createPool({ url, applicationName: 'spec' });
  try {
    await pool.query('select 1');
    return null;
  } catch (error) {
    return translateDatabaseError(error);
  } finally {
    await pool.end();
  }
};

const UNAVAILABLE = { kind: 'transient', code: 'LOG.UNAVAILABLE' };

describe('a server that refuses a connection', () => {
  it('is unavailable when the database accepts none', async () => {
    const name = nameOf(database.url);
    await admin.query(`alter database "${name}" allow_connections false`);
    expect(await failureAt(database.urlFor('gateway'))).toMatchObject(UNAVAILABLE);
    await admin.query(`alter database "${name}" allow_connections true`);
  });

  it('is unavailable when the database does not exist', async () => {
    const url = new URL(database.urlFor('gateway'));
    url.pathname = '/nowhere';
    expect(await failureAt(url.href)).toMatchObject(UNAVAILABLE);
  });
});

it('blames the service for a missing grant, without the SQL state', async () => {
  const pool = createPool({ url: database.urlFor('reader'), applicationName: 'spec' });
  const failure = await pool.query('create table t (a int)').catch(translateDatabaseError);
  await pool.end();
  expect(failure).toMatchObject({ kind: 'bug', code: 'DATABASE.FORBIDDEN', data: {} });
});
