import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type pg from 'pg';
import { ALL_WORKSPACES, createPool } from '@antiphon/database';
import { runProjection } from '@antiphon/event-store';
import { silentLogger } from '@antiphon/observability';
import { until } from '@antiphon/testing';
import { createRecallFacts } from '../context/recall-facts.js';
import { WORKSPACE, openMemory } from '../memory-fixtures.spec.js';
import type { Conversation, MemoryFixture } from '../memory-fixtures.spec.js';
import { applySessionEvents } from '../projections/apply-session-events.js';
import { PROJECTION_NAME } from '../projections/session-memory.events.js';
import { EntryReader } from './read-entries.js';

const SESSIONS = 20_000;
/** A server keeps the plan of a prepared statement from its sixth execution. */
const ROUNDS = 8;
/** Rows of `memory_sessions` that one round may read. */
const ROWS_OF_A_ROUND = 50;
const NAME = 'spec-unanalyzed';

let memory: MemoryFixture;
let admin: pg.Pool;
beforeAll(async () => {
  memory = await openMemory();
  admin = createPool({ url: memory.database.url, applicationName: 'spec-admin', max: 1 });
  await admin.query('alter table memory_sessions set (autovacuum_enabled = off)');
  await admin.query(
    `insert into memory_sessions select $1, gen_random_uuid(), i::text, sha256(i::text::bytea), 'other', 3
    from generate_series(1, ${SESSIONS}) i`,
    [WORKSPACE],
  );
});
afterAll(async () => {
  await admin.end();
  await memory.close();
});

const rowsRead = async (): Promise<number> => {
  const { rows } = await admin.query<{ rows: string }>(`select seq_tup_read + (select sum(idx_tup_read)
      from pg_stat_user_indexes i where i.relid = t.relid) as rows
    from pg_stat_user_tables t where relname = 'memory_sessions'`);
  return Number(rows[0]?.rows);
};

/** Runs work on one connection. A server counts what a connection read at the latest at its end. */
const onOneConnection = async (work: (pool: pg.Pool) => Promise<void>): Promise<void> => {
  const options = { url: memory.memoryUrl, applicationName: NAME, max: 1 };
  const pool = createPool({ ...options, workspace: ALL_WORKSPACES });
  await work(pool).finally(() => pool.end());
  const connections = 'select from pg_stat_activity where application_name = $1';
  await until(async () => (await admin.query(connections, [NAME])).rowCount === 0);
};

const project = async (pool: pg.Pool): Promise<void> => {
  const projection = runProjection({
    ...{ pool, name: PROJECTION_NAME, categories: ['session'], handle: applySessionEvents },
    logger: silentLogger,
  });
  await projection.waitForPosition(await memory.store.headPosition());
  await projection.stop();
};

const readAll = async (pool: pg.Pool, { sessionId }: Conversation): Promise<void> => {
  const reader = new EntryReader(pool);
  const now = { at: Number.MAX_SAFE_INTEGER, includeSuperseded: false };
  const learned = await reader.list(WORKSPACE, { kind: 'session', id: sessionId }, now);
  expect(learned).toHaveLength(1);
  expect(await reader.agentOf(WORKSPACE, sessionId, now.at)).toBe('main');
  const [{ memoryId }] = learned as [(typeof learned)[number]];
  expect(await reader.belongsTo(WORKSPACE, memoryId, 'main')).toBe(true);
  await reader.turnsOf(WORKSPACE, memoryId, { upTo: now.at, limit: 10 });
  expect(await reader.list(WORKSPACE, { kind: 'agent', id: 'main' }, now)).not.toHaveLength(0);
  const question = { workspace: WORKSPACE, sessionId, sessionKey: null, includeSuperseded: false };
  expect((await createRecallFacts(pool)({ ...question, atLeast: 'newest' })).facts).toHaveLength(1);
};

it(`reads few of ${SESSIONS} sessions in each projected turn and read before the first analyze`, async () => {
  const before = await rowsRead();
  await onOneConnection(async (pool) => {
    for (let round = 0; round < ROUNDS; round++) {
      const conversation = await memory.begin(`main:spec:${randomUUID()}`);
      await memory.say(conversation, 'my name is Ada');
      await project(pool);
      await readAll(pool, conversation);
    }
  });
  const { rows } = await admin.query<{ reltuples: number }>(
    `select reltuples from pg_class where relname = 'memory_sessions'`,
  );
  expect(rows).toEqual([{ reltuples: -1 }]);
  expect((await rowsRead()) - before).toBeLessThan(ROUNDS * ROWS_OF_A_ROUND);
});
