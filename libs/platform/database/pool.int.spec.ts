import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { assertDurable, createPool, inTransaction, withRole } from '@antiphon/database';
import { createTestDatabase, type TestDatabase, until } from '@antiphon/testing';

describe('a pool', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
  }, 60_000);
  afterAll(() => database.drop(), 60_000);

  const withPool = async <T>(
    more: Partial<Parameters<typeof createPool>[0]>,
    work: (pool: ReturnType<typeof createPool>) => Promise<T>,
  ): Promise<T> => {
    const pool = createPool({ url: database.url, applicationName: 'spec', ...more });
    try {
      return await work(pool);
    } finally {
      await pool.end();
    }
  };

  it('sets the given role and application name', () =>
    withPool({ role: 'antiphon_agent' }, async (pool) => {
      const { rows } = await pool.query(
        `select current_user as role, current_setting('application_name') as name`,
      );
      expect(rows).toEqual([{ role: 'antiphon_agent', name: 'spec' }]);
    }));

  it('adds the role to the options of a URL', () => {
    const url = new URL(withRole('postgresql://h/db?sslmode=require&options=-c%20a%3Db', 'antiphon_agent'));
    expect(url.searchParams.get('options')).toBe('-c a=b -c role=antiphon_agent');
    expect(url.searchParams.get('sslmode')).toBe('require');
  });

  it('times out statements and lock waits', () =>
    withPool({ statementTimeoutMs: 200, lockTimeoutMs: 50 }, async (pool) => {
      await expect(inTransaction(pool, (client) => client.query('select pg_sleep(5)'))).rejects.toMatchObject(
        {
          code: 'LOG.UNAVAILABLE',
        },
      );
      await inTransaction(pool, async (holder) => {
        await holder.query('select from log_head for update');
        const waiting = inTransaction(pool, (client) => client.query('select from log_head for update'));
        await expect(waiting).rejects.toMatchObject({ code: 'LOG.UNAVAILABLE' });
      });
    }));

  it('survives broken connections, idle or in use', () =>
    withPool({ max: 2 }, async (pool) => {
      await pool.query('select 1');
      const kill = (client: { query(text: string): Promise<unknown> }) =>
        client.query(
          `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'spec' and pid <> pg_backend_pid()`,
        );
      await withPool({ applicationName: 'killer' }, (killer) => kill(killer));
      await until(() => pool.totalCount === 0);
      await expect(
        inTransaction(pool, async (client) => {
          await withPool({ applicationName: 'killer' }, (killer) => kill(killer));
          await client.query('select 1');
        }),
      ).rejects.toMatchObject({ kind: 'transient', code: 'LOG.UNAVAILABLE' });
      expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
    }));

  it('rolls back failed work and rejects with an AppError', () =>
    withPool({}, async (pool) => {
      await pool.query('create table kept (n int primary key)');
      const failing = inTransaction(pool, async (client) => {
        await client.query('insert into kept values (1)');
        await client.query('insert into kept values (1)');
      });
      await expect(failing).rejects.toMatchObject({ kind: 'conflict', code: 'DATABASE.UNIQUE' });
      expect((await pool.query('select * from kept')).rows).toEqual([]);
    }));

  it('accepts a durable server and rejects one that is not', async () => {
    await withPool({}, (pool) => assertDurable(pool));
    const careless = `${database.url}?options=${encodeURIComponent('-c synchronous_commit=off')}`;
    await withPool({ url: careless }, (pool) =>
      expect(assertDurable(pool)).rejects.toMatchObject({
        code: 'DATABASE.NOT_DURABLE',
        message: expect.stringContaining('synchronous_commit=off'),
      }),
    );
  });

  it('rejects as unavailable without a server', () =>
    withPool({ url: 'postgresql://postgres@127.0.0.1:1/none', connectionTimeoutMs: 500 }, (pool) =>
      expect(assertDurable(pool)).rejects.toMatchObject({ kind: 'transient', code: 'LOG.UNAVAILABLE' }),
    ));
});
