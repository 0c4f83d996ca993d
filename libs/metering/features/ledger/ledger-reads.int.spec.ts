import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { openMetering } from '../metering-fixtures.spec.js';

let metering: Awaited<ReturnType<typeof openMetering>>;
beforeAll(async () => {
  metering = await openMetering();
});
afterAll(() => metering.close());

interface Counters {
  readonly updated: number;
  readonly read: number;
}

/** Returns the rows of reservations updated so far, and the index entries read for them. */
const readCounters = async (): Promise<Counters> => {
  const { rows } = await metering.admin.query<Counters>(
    `select t.n_tup_upd::int as updated, (select sum(idx_tup_read)::int from pg_stat_user_indexes i where i.relid = t.relid) as read
       from pg_stat_user_tables t where t.relname = 'budget_reservations'`,
  );
  return rows[0]!;
};

// The statements are planned once, while the table is small. An index by workspace alone then looks
// as cheap as the primary key, but it reads every reservation of the workspace.
it('settles a reservation without reading the others of its workspace', async () => {
  const { reserve, settle } = metering.start();
  const settleOne = async (): Promise<void> => {
    const request = metering.request();
    await reserve(request);
    const outcome = { kind: 'used', inputTokens: 9, outputTokens: 1, estimated: false } as const;
    await settle({ workspace: 'default', reservationId: request.reservationId, outcome });
  };
  /** The server publishes its counters at the end of a transaction, once a second. */
  const countersAfter = async (updated: number): Promise<Counters> => {
    for (;;) {
      const counters = await readCounters();
      if (counters.updated >= updated) return counters;
      await settleOne();
    }
  };
  await settleOne();
  // The server does the same by itself, and plans again after it.
  await metering.admin.query('vacuum analyze budget_reservations');
  await Promise.all(Array.from({ length: 500 }, settleOne));
  const before = await countersAfter(500);
  const after = await countersAfter(before.updated + 20);
  expect((after.read - before.read) / (after.updated - before.updated)).toBeLessThan(10);
});
