import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { createPool } from '@antiphon/database';
import { createTestDatabase, until, type TestDatabase } from '@antiphon/testing';
import { runOnSnapshot } from './read-log.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
}, 60_000);
afterAll(() => database.drop());

it('reports a connection that the server ends between two statements of an audit', async () => {
  const pool = createPool({ url: database.url, applicationName: 'audit-spec', max: 1 });
  const other = createPool({ url: database.url, applicationName: 'spec' });
  try {
    const audit = runOnSnapshot(
      pool,
      async () => null,
      async (client) => {
        let isLost = false;
        client.once('end', () => (isLost = true));
        await other.query(
          `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'audit-spec'`,
        );
        await until(() => isLost);
        await client.query('select 1');
      },
      async () => undefined,
    );
    await expect(audit).rejects.toMatchObject({ kind: 'transient', code: 'LOG.UNAVAILABLE' });
    expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  } finally {
    await Promise.all([pool.end(), other.end()]);
  }
});
