import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type pg from 'pg';
import { createPool } from '@antiphon/database';
import { createLeaseStore, type Lease, type LeaseStore } from '@antiphon/event-store';
import { createTestDatabase, type TestDatabase } from '@antiphon/testing';

const COUNT = 300;

let database: TestDatabase;
let pool: pg.Pool;
let admin: pg.Pool;
let leases: LeaseStore;
let statements: number;
beforeAll(async () => {
  database = await createTestDatabase();
  pool = createPool({ url: database.urlFor('agent'), applicationName: 'spec', max: 4 });
  admin = createPool({ url: database.url, applicationName: 'spec', max: 1 });
  const counted = Object.create(pool) as pg.Pool;
  const query = pool.query.bind(pool) as (...args: unknown[]) => unknown;
  counted.query = ((...args: unknown[]) => {
    statements += 1;
    return query(...args);
  }) as pg.Pool['query'];
  leases = createLeaseStore(counted);
});
afterAll(async () => {
  await Promise.all([pool.end(), admin.end()]);
  await database.drop();
});

const acquire = async (owner: string): Promise<Lease> => {
  const attempt = await leases.acquire('default', `session/${randomUUID()}`, owner, 60_000);
  if (!attempt.acquired) throw new Error('the lease is held');
  return attempt.lease;
};

it('releases leases of the same time with few statements, and no lease of another epoch or owner', async () => {
  const held = await Promise.all(Array.from({ length: COUNT }, () => acquire('one')));
  const [other, newer] = [await acquire('two'), await acquire('one')];
  statements = 0;
  const stale = [
    { ...other, owner: 'one' },
    { ...newer, epoch: newer.epoch + 1 },
  ];
  await Promise.all([...held, ...stale].map((lease) => leases.release(lease)));
  expect(statements).toBeLessThanOrEqual(2);
  const { rows } = await admin.query<{ name: string }>('select name from leases where owner is not null');
  expect(new Set(rows.map(({ name }) => name))).toEqual(new Set([other.name, newer.name]));
});
