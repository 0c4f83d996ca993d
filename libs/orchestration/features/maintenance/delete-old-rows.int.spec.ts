import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { createPool } from '@antiphon/database';
import { createLeaseStore } from '@antiphon/event-store';
import { silentLogger, systemClock } from '@antiphon/observability';
import { createTestDatabase } from '@antiphon/testing';
import type { TestDatabase } from '@antiphon/testing';
import { createDeleteOldRows } from './delete-old-rows.js';

let database: TestDatabase;
let admin: pg.Pool;
let agent: pg.Pool;

beforeAll(async () => {
  database = await createTestDatabase();
  admin = createPool({ url: database.url, applicationName: 'spec', max: 2 });
  agent = createPool({ url: database.urlFor('agent'), applicationName: 'spec', max: 2 });
}, 60_000);
afterAll(async () => {
  await Promise.all([admin?.end(), agent?.end()]);
  await database?.drop();
});
beforeEach(() => admin.query('delete from idempotency; delete from leases; delete from agent_runs'));

const sweep = (claimDays = 7) =>
  createDeleteOldRows({ pool: agent, clock: systemClock, logger: silentLogger, claimDays })();
const claim = (key: string, days: number) =>
  admin.query(
    `insert into idempotency values ('default', 'token/turn.submit', $1, 'd', '{}', null, 1, 1, now() - make_interval(days => $2))`,
    [key, days],
  );
const lease = (name: string, owner: string | null, epoch: number, days: number) =>
  admin.query(`insert into leases values ('default', $1, $2, $3, now() - make_interval(days => $4))`, [
    name,
    owner,
    epoch,
    days,
  ]);
const list = async (sql: string): Promise<string[]> =>
  (await admin.query<{ name: string }>(sql)).rows.map(({ name }) => name);
const claims = () => list('select key as name from idempotency order by 1');
const leases = () => list('select name from leases order by 1');

describe('old operational rows', () => {
  it('are deleted after a week, and claims of open runs stay', async () => {
    const [open, ended] = [randomUUID(), randomUUID()];
    await admin.query(
      `insert into agent_runs values ('default', $1, null, 'r', 'running', 'main', now(), null, 1),
         ('default', $2, null, 'r', 'completed', 'main', now(), now(), 2)`,
      [open, ended],
    );
    await claim('young', 6);
    await claim('old', 8);
    await claim(`run/${open}/first`, 90);
    await claim(`run/${ended}/first`, 90);
    expect(await sweep()).toBe(2);
    expect(await claims()).toEqual([`run/${open}/first`, 'young'].sort());
    expect(await sweep(3)).toBe(1);
    expect(await claims()).toEqual([`run/${open}/first`]);
  });

  it('include leases that no process renews, and leave those of leaders', async () => {
    await lease('session/old', null, 3, 8);
    await lease('session/young', 'agent-1', 1, 1);
    await lease('relay', null, 9, 90);
    expect(await sweep()).toBe(1);
    expect(await leases()).toEqual(['relay', 'session/young']);
  });

  it('do not give their epoch to a later holder', async () => {
    await lease('session/again', 'agent-1', 41, 30);
    await sweep();
    expect(await leases()).toEqual([]);
    const attempt = await createLeaseStore(agent).acquire('default', 'session/again', 'agent-2', 1_000);
    expect(attempt).toMatchObject({ acquired: true, lease: { epoch: 42 } });
  });

  it('include the parked streams of a projection that no longer exists', async () => {
    await admin.query(`insert into projection_checkpoints values ('agent-present', 1, 1, now())`);
    await admin.query(`insert into projection_parked (projection, workspace, stream_id, position, reason, parked_at)
      values ('agent-present', 'default', 'session-1', 1, 'x', now()), ('agent-gone', 'default', 'session-1', 1, 'x', now())`);
    expect(await sweep()).toBe(1);
    expect(await list('select projection as name from projection_parked')).toEqual(['agent-present']);
  });

  it('of the last day are kept by the database itself', async () => {
    for (const name of ['antiphon_delete_claims', 'antiphon_delete_leases'])
      await expect(agent.query(`select ${name}(now(), 10)`)).rejects.toMatchObject({ code: '23514' });
  });
});
