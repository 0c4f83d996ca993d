import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import { agentSessions } from '@antiphon/agent-features/projections';
import { createPool } from '@antiphon/database';
import {
  compareProjection,
  createPostgresEventStore,
  listArchives,
  rebuildProjection,
} from '@antiphon/event-store';
import type { NewEvent } from '@antiphon/event-store';
import type { JsonObject } from '@antiphon/kernel';
import { budgetLedger } from '@antiphon/metering-features/projections';
import { createTestDatabase } from '@antiphon/testing';
import type { TestDatabase } from '@antiphon/testing';
import type { CommandContext } from '../output.js';
import { archive, restore } from './archive-events.js';

const GOLDEN = new URL('../../../../libs/contracts/events/golden/', import.meta.url);
const workspace = 'default';

let database: TestDatabase;
let folder: string;
let admin: pg.Pool;
let agent: pg.Pool;

beforeEach(async () => {
  database = await createTestDatabase();
  folder = mkdtempSync(join(tmpdir(), 'antiphon-rows-'));
  admin = createPool({ url: database.url, applicationName: 'spec', max: 2 });
  agent = createPool({ url: database.urlFor('agent'), applicationName: 'spec', max: 2 });
});
afterEach(async () => {
  await Promise.all([admin.end(), agent.end()]);
  await database.drop();
  rmSync(folder, { recursive: true });
});

const golden = (file: string, change: JsonObject): NewEvent => {
  const { type, schemaVersion, data } = JSON.parse(readFileSync(new URL(file, GOLDEN), 'utf8')) as NewEvent;
  const metadata = { correlationId: 'spec', service: 'spec' };
  return { eventId: randomUUID(), type, schemaVersion, data: { ...data, ...change }, metadata };
};
const append = async (streamId: string, ...events: NewEvent[]): Promise<void> => {
  const role = streamId.startsWith('budget') ? 'metering' : 'agent';
  const pool = createPool({ url: database.urlFor(role), applicationName: 'spec', max: 1 });
  const store = createPostgresEventStore(pool);
  await store.append({ workspace, streams: [{ streamId, expectedVersion: 'any', events }] });
  await store.close();
  await pool.end();
};
/** Appends an answered approval and a settled reservation, and folds them. */
const work = async (): Promise<void> => {
  const approval = { approvalId: randomUUID() };
  await append(
    `session-${randomUUID()}`,
    golden('session/SessionStarted.v1.json', {}),
    golden('session/ApprovalRequested.v1.json', approval),
    golden('session/ApprovalGranted.v1.json', approval),
  );
  const reservation = { reservationId: randomUUID() };
  await append(
    `budget-${reservation.reservationId}`,
    golden('budget/BudgetReserved.v1.json', reservation),
    golden('budget/BudgetSettled.v1.json', reservation),
  );
};
const projections = [agentSessions, budgetLedger];
const fold = async (): Promise<void> => {
  for (const definition of projections) await rebuildProjection(admin, definition, { archives: folder });
};
const countDiffering = async (): Promise<number> => {
  let differing = 0;
  for (const definition of projections)
    differing += (await compareProjection(admin, definition, { archives: folder })).differing;
  return differing;
};
const count = async (): Promise<[number, number]> => {
  const { rows } = await admin.query<{ approvals: string; reservations: string }>(
    `select (select count(*) from agent_approvals) as approvals,
       (select count(*) from budget_reservations) as reservations`,
  );
  return [Number(rows[0]?.approvals), Number(rows[0]?.reservations)];
};
const sweep = () => agent.query('select antiphon_delete_archived_rows() as deleted');
const context: () => CommandContext = () => ({
  output: {
    json: true,
    result: () => undefined,
    line: () => undefined,
    note: () => undefined,
    piece: () => undefined,
    failure: () => Promise.resolve(),
  },
  env: { ANTIPHON_DATABASE_URL: database.url, ANTIPHON_HOME: folder },
  cwd: folder,
  gateway: () => Promise.reject(new Error('spec')),
  http: () => Promise.reject(new Error('spec')),
});

describe('rows of archived streams', () => {
  it('are deleted by the sweep, stay deleted in a rebuild, and return with their events', async () => {
    await work();
    const position = (await admin.query<{ last: string }>('select max(position) as last from events')).rows;
    await work();
    await fold();
    expect(await count()).toEqual([2, 2]);
    expect((await sweep()).rows).toEqual([{ deleted: null }]);

    await archive(context(), { before: position[0]?.last ?? '', folder });
    expect((await listArchives(admin))[0]).toMatchObject({ streams: 2, hasDeletedRows: false });
    expect([await count(), await countDiffering()]).toEqual([[2, 2], 0]);

    expect((await sweep()).rows).toEqual([{ deleted: '2' }]);
    expect([await count(), await countDiffering()]).toEqual([[1, 1], 0]);
    expect((await sweep()).rows).toEqual([{ deleted: null }]);
    await fold();
    expect(await count()).toEqual([1, 1]);

    await restore(context(), undefined, { all: true, folder });
    expect([await count(), await countDiffering()]).toEqual([[2, 2], 0]);
  });
});
