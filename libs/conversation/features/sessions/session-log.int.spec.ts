import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import { sessionStream } from '@antiphon/contracts/agent';
import { REST_RULES } from '@antiphon/contracts/events';
import { acrossWorkspaces, createPool, inTransaction } from '@antiphon/database';
import { archiveEvents, createPostgresEventStore } from '@antiphon/event-store';
import type { EventStore, NewEvent, StreamPageOptions } from '@antiphon/event-store';
import type { JsonObject } from '@antiphon/kernel';
import { createTestDatabase } from '@antiphon/testing';
import type { TestDatabase } from '@antiphon/testing';
import { compareSnapshots } from './compare-snapshots.js';
import { emptyFold } from './session-fold.js';
import { createSessionLog, createSessionSnapshots, foldSignature, SNAPSHOT_EVERY } from './session-log.js';

jest.setTimeout(30_000);

const window = { turns: 5, chars: 10_000 };
const workspace = 'default';
const now = '2026-11-21T12:00:00.000Z';
let database: TestDatabase;
let pool: pg.Pool;
let store: EventStore;
let reads: StreamPageOptions[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  pool = createPool({ url: database.urlFor('agent'), applicationName: 'agent-spec' });
  store = createPostgresEventStore(pool);
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const logFor = (form = window) =>
  createSessionLog(
    {
      readStreamPage: (space, stream, options) => {
        reads.push(options);
        return store.readStreamPage(space, stream, options);
      },
    },
    createSessionSnapshots(pool, foldSignature(form)),
    form,
  );

const event = (type: string, data: JsonObject): NewEvent => ({
  eventId: randomUUID(),
  type,
  schemaVersion: 1,
  data,
  metadata: { correlationId: 'c', service: 'agent' },
});

/** Appends a session with many turns that failed at once. */
const longSession = async (turns: number): Promise<string> => {
  const sessionId = randomUUID();
  const start = { sessionId, sessionKey: 'main:a:b:c', agentId: 'main', startedAt: now };
  const events = Array.from({ length: turns }, () => randomUUID()).flatMap((turnId) => [
    event('TurnRequested', { turnId, content: 'hi', requestedAt: now }),
    event('TurnFailed', { turnId, code: 'X.Y', message: 'no', failedAt: now }),
  ]);
  const streamId = sessionStream(sessionId);
  await store.append({
    workspace,
    streams: [{ streamId, expectedVersion: 0, events: [event('SessionStarted', start)] }],
  });
  for (let from = 0; from < events.length; from += 1_000)
    await store.append({
      workspace,
      streams: [{ streamId, expectedVersion: 'any', events: events.slice(from, from + 1_000) }],
    });
  return sessionId;
};

describe('a session of thousands of events', () => {
  it('is folded from its first event once, and from a snapshot afterwards', async () => {
    const sessionId = await longSession(1_200);
    reads = [];
    const first = await logFor().load(workspace, sessionId);
    expect(first).toMatchObject({ version: 2_401, state: { attempt: 1_200, open: null } });
    expect(reads.map(({ fromVersion }) => fromVersion)).toEqual([1, 1_001, 2_001]);

    const turnId = randomUUID();
    const requested = event('TurnRequested', { turnId, content: 'more', requestedAt: now });
    const streams = [{ streamId: sessionStream(sessionId), expectedVersion: 2_401, events: [requested] }];
    await store.append({ workspace, streams });
    reads = [];
    const second = await logFor().load(workspace, sessionId);
    expect(reads.map(({ fromVersion }) => fromVersion)).toEqual([2_402]);
    expect(second).toMatchObject({
      version: 2_402,
      state: { open: { turnId } },
      origins: { [turnId]: { correlationId: 'c', causationId: requested.eventId } },
    });
  });

  it('is folded from its first event when the form of the fold changed', async () => {
    const sessionId = await longSession(SNAPSHOT_EVERY);
    await logFor().load(workspace, sessionId);
    reads = [];
    await logFor({ ...window, turns: 3 }).load(workspace, sessionId);
    expect(reads[0]?.fromVersion).toBe(1);
  });

  it('writes no snapshot when it is short', async () => {
    const sessionId = await longSession(3);
    await logFor().load(workspace, sessionId);
    const { rows } = await acrossWorkspaces(pool).query(
      'select from agent_session_snapshots where session_id = $1',
      [sessionId],
    );
    expect(rows).toHaveLength(0);
  });

  it('stores the newer of two snapshots', async () => {
    const sessionId = await longSession(10);
    const log = logFor();
    await log.snapshot(workspace, sessionId, { ...emptyFold, version: 20 });
    await log.snapshot(workspace, sessionId, { ...emptyFold, version: 10 });
    const { rows } = await acrossWorkspaces(pool).query<{ version: string }>(
      'select version from agent_session_snapshots where session_id = $1',
      [sessionId],
    );
    expect(rows).toEqual([{ version: '20' }]);
  });

  // @shows review1-16
  it('is folded from its first event when its snapshot is of another history', async () => {
    const sessionId = await longSession(SNAPSHOT_EVERY);
    const first = await logFor().load(workspace, sessionId);
    const system = acrossWorkspaces(pool);
    const key = [sessionId];
    await system.query(
      `update agent_session_snapshots set head_hash = '\\x00', fold = '{"version":1001}' where session_id = $1`,
      key,
    );
    reads = [];
    expect(await logFor().load(workspace, sessionId)).toEqual(first);
    expect(reads[0]?.fromVersion).toBe(1);
    const text = 'select octet_length(head_hash) as bytes from agent_session_snapshots where session_id = $1';
    expect((await system.query(text, key)).rows).toEqual([{ bytes: 32 }]);
  });

  it('is refused once it is archived, also when its snapshot is at its head', async () => {
    const sessionId = await longSession(SNAPSHOT_EVERY);
    await logFor().load(workspace, sessionId);
    await store.append({
      workspace,
      streams: [
        { streamId: sessionStream(randomUUID()), expectedVersion: 0, events: [event('SessionStarted', {})] },
      ],
    });
    const admin = createPool({ url: database.url, applicationName: 'spec', max: 2 });
    const folder = await mkdtemp(join(tmpdir(), 'antiphon-snapshots-'));
    const position = Number.MAX_SAFE_INTEGER;
    await admin.query(`insert into log_roots values (1, 'root', 1000000, '\\x00', '{}', now())`);
    await archiveEvents({ pool: admin, folder, rules: REST_RULES, before: { position } });
    await admin.end();
    await rm(folder, { recursive: true });
    await expect(logFor().load(workspace, sessionId)).rejects.toMatchObject({ code: 'LOG.ARCHIVED' });
    const text = 'select from agent_session_snapshots where session_id = $1';
    expect((await acrossWorkspaces(pool).query(text, [sessionId])).rowCount).toBe(0);
  });

  it('is refused by a version that does not know its events', async () => {
    const sessionId = await longSession(1);
    const streams = [
      {
        streamId: sessionStream(sessionId),
        expectedVersion: 'any' as const,
        events: [event('TurnBlessed', {})],
      },
    ];
    await store.append({ workspace, streams });
    await expect(logFor().load(workspace, sessionId)).rejects.toMatchObject({
      code: 'SESSION.EVENT_UNKNOWN',
    });
  });
});

describe('the audit of snapshots', () => {
  const compareAsReader = async () => {
    const reader = createPool({ url: database.urlFor('reader'), applicationName: 'spec-audit', max: 1 });
    try {
      return await inTransaction(reader, (client) => compareSnapshots(client));
    } finally {
      await reader.end();
    }
  };

  it('finds a snapshot that is not the fold of its events, and names the session', async () => {
    const owner = createPool({ url: database.url, applicationName: 'spec-owner', max: 1 });
    await owner.query('delete from agent_session_snapshots');
    const sessionId = await longSession(300);
    await logFor().load(workspace, sessionId);
    expect(await compareAsReader()).toEqual({ rows: 1, differences: [] });
    await owner.query(`update agent_session_snapshots set head_hash = sha256('x')`);
    expect(await compareAsReader()).toEqual({
      rows: 1,
      differences: [
        `the snapshot of session ${sessionId} at version 601 is bound to another hash than the log's`,
      ],
    });
    await owner.query(
      `update agent_session_snapshots s set head_hash = h.hash from stream_heads h where h.stream_id = 'session-' || s.session_id`,
    );
    await owner.query(`update agent_session_snapshots set fold = jsonb_set(fold, '{state,attempt}', '299')`);
    expect(await compareAsReader()).toEqual({
      rows: 1,
      differences: [`the snapshot of session ${sessionId} at version 601 is not the fold of its events`],
    });
    await owner.query(
      `update agent_session_snapshots set version = 700, fold = jsonb_set(fold, '{version}', '700')`,
    );
    expect((await compareAsReader()).differences[0]).toContain('the log has 601 of its events');
    await owner.end();
  });
});
