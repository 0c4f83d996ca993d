import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { runStream, sessionStream } from '@antiphon/contracts/agent';
import { createPool } from '@antiphon/database';
import { createPostgresEventStore } from '@antiphon/event-store';
import type { JsonObject } from '@antiphon/kernel';
import { silentLogger } from '@antiphon/observability';
import { DATABASE_POOL, ProblemFilter } from '@antiphon/service-host';
import { createTestDatabase, type TestDatabase, until } from '@antiphon/testing';
import { AgentAccess } from '../access/agent-access.js';
import { LOCAL_OPERATOR } from '../access/authenticator.js';
import { EventsController } from './events.controller.js';

interface Listed {
  readonly type: string;
  readonly streamId: string;
  readonly severity: string;
  readonly recordedAt: string;
}

const [alice, bob, run] = [randomUUID(), randomUUID(), randomUUID()];
const ALICE = sessionStream(alice);
const BOB = sessionStream(bob);
const RUN = runStream(run);

let database: TestDatabase;
let store: ReturnType<typeof createPostgresEventStore>;
let pools: ReturnType<typeof createPool>[];
let app: NestFastifyApplication;
let middle: string;

const append = (streamId: string, ...events: readonly (readonly [type: string, data: JsonObject])[]) =>
  store.append({
    workspace: 'default',
    streams: [
      {
        streamId,
        expectedVersion: 'any',
        events: events.map(([type, data]) => ({
          ...{ eventId: randomUUID(), type, schemaVersion: 1, data },
          metadata: { correlationId: 'spec', service: 'agent' },
        })),
      },
    ],
  });

const list = async (query: string): Promise<{ events: Listed[]; nextCursor: string | null }> => {
  const { statusCode, body } = await app.inject(`/api/v1/events?${query}`);
  expect([statusCode, statusCode === 200 ? '' : body]).toEqual([200, '']);
  return JSON.parse(body) as { events: Listed[]; nextCursor: string | null };
};
const typesOf = async (query: string): Promise<string[]> =>
  (await list(query)).events.map(({ type, streamId }) => `${streamId} ${type}`);

beforeAll(async () => {
  database = await createTestDatabase();
  pools = (['agent', 'gateway'] as const).map((role) =>
    createPool({ url: database.urlFor(role), applicationName: 'spec', logger: silentLogger }),
  );
  store = createPostgresEventStore(pools[0] as (typeof pools)[0], {});
  const turnId = randomUUID();
  await append(ALICE, ['SessionStarted', { agentId: 'alice' }], ['TurnRequested', { turnId }]);
  await append(BOB, ['SessionStarted', { agentId: 'bob' }], ['TurnCancelled', { turnId }]);
  await append(RUN, ['RunStarted', { runId: run }], ['TaskStarted', { agentId: 'alice' }]);
  middle = (await store.readStream('default', RUN)).at(-1)?.recordedAt ?? '';
  // The next events are more than 5 ms later, which is the time that a spec asks for.
  await until(() => Date.now() > Date.parse(middle) + 10);
  await append(RUN, ['TaskFailed', { code: 'X.Y' }], ['RunFailed', { runId: run }]);
  await append(ALICE, ['TurnFailed', { turnId }]);

  const module = {
    module: class SpecModule {},
    controllers: [EventsController],
    providers: [
      { provide: DATABASE_POOL, useValue: pools[1] },
      { provide: AgentAccess, useValue: new AgentAccess({} as ConstructorParameters<typeof AgentAccess>[0]) },
    ],
  };
  app = await NestFactory.create<NestFastifyApplication>(module, new FastifyAdapter(), { logger: false });
  app.useGlobalFilters(new ProblemFilter(silentLogger));
  const fastify = app.getHttpAdapter().getInstance();
  fastify.addHook('onRequest', (request, _reply, done) => {
    request.principal = LOCAL_OPERATOR;
    done();
  });
  await app.init();
}, 60_000);
afterAll(async () => {
  await app.close();
  await store.close();
  for (const pool of pools) await pool.end();
  await database.drop();
});

describe('GET /api/v1/events', () => {
  it('returns the events of a severity', async () => {
    expect(await typesOf('severity=error')).toEqual([
      `${RUN} TaskFailed`,
      `${RUN} RunFailed`,
      `${ALICE} TurnFailed`,
    ]);
    expect(await typesOf('severity=warning')).toEqual([`${BOB} TurnCancelled`]);
    const { events } = await list('severity=info');
    expect(events.map(({ severity }) => severity)).toEqual(['info', 'info', 'info', 'info', 'info']);
  });

  it('returns the events of a type and of a stream', async () => {
    expect(await typesOf('type=SessionStarted')).toEqual([
      `${ALICE} SessionStarted`,
      `${BOB} SessionStarted`,
    ]);
    expect(await typesOf(`stream=${BOB}`)).toEqual([`${BOB} SessionStarted`, `${BOB} TurnCancelled`]);
  });

  it('returns the events of an agent: of its sessions, and of runs with a task of it', async () => {
    const events = await typesOf('agent=alice');
    expect(events).toEqual([
      ...[`${ALICE} SessionStarted`, `${ALICE} TurnRequested`],
      ...[`${RUN} RunStarted`, `${RUN} TaskStarted`, `${RUN} TaskFailed`, `${RUN} RunFailed`],
      `${ALICE} TurnFailed`,
    ]);
    expect(await typesOf('agent=bob')).toEqual([`${BOB} SessionStarted`, `${BOB} TurnCancelled`]);
    expect(await typesOf('agent=carol')).toEqual([]);
    expect(await typesOf('agent=alice&severity=error&type=TurnFailed')).toEqual([`${ALICE} TurnFailed`]);
  });

  it('returns the events recorded since and until a time', async () => {
    const after = new Date(Date.parse(middle) + 5).toISOString();
    const late = await list(`since=${after}`);
    expect(late.events.map(({ type }) => type)).toEqual(['TaskFailed', 'RunFailed', 'TurnFailed']);
    expect(late.events.every(({ recordedAt }) => recordedAt >= after)).toBe(true);
    const early = await list(`until=${after}`);
    expect(early.events.map(({ type }) => type)).toEqual([
      ...['SessionStarted', 'TurnRequested', 'SessionStarted', 'TurnCancelled', 'RunStarted', 'TaskStarted'],
    ]);
  });

  // @shows C13
  it('pages by limit and offset, and by limit and cursor', async () => {
    const all = await typesOf('limit=1000');
    expect(all).toHaveLength(9);
    expect(await typesOf('limit=3&offset=4')).toEqual(all.slice(4, 7));
    expect(await typesOf('limit=3&offset=8')).toEqual(all.slice(8));
    expect(await typesOf('offset=9')).toEqual([]);
    const first = await list('limit=4');
    expect(first.events.map(({ streamId, type }) => `${streamId} ${type}`)).toEqual(all.slice(0, 4));
    expect(await typesOf(`limit=1000&cursor=${first.nextCursor}`)).toEqual(all.slice(4));
    expect((await list('limit=9')).nextCursor).toBeNull();
  });

  it.each([
    ['limit=0', 'limit'],
    ['offset=-1', 'offset'],
    ['severity=fatal', 'severity'],
    ['since=yesterday', 'since'],
    ['colour=red', 'colour'],
  ])('refuses %s and names the parameter', async (query, name) => {
    const { statusCode, body } = await app.inject(`/api/v1/events?${query}`);
    expect(statusCode).toBe(400);
    expect(JSON.parse(body)).toMatchObject({
      code: 'GATEWAY.INVALID_QUERY',
      detail: expect.stringContaining(name),
    });
  });

  it('answers 503 with Retry-After while the database refuses connections', async () => {
    const maintenance = new URL(database.url);
    maintenance.pathname = '/postgres';
    const admin = createPool({ url: maintenance.href, applicationName: 'spec-admin' });
    const allow = (isAllowed: boolean) =>
      admin.query(`alter database "${database.name}" allow_connections ${isAllowed}`);
    try {
      await allow(false);
      await admin.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where datname = $1 and application_name = 'spec'`,
        [database.name],
      );
      const { statusCode, headers, body } = await app.inject('/api/v1/events?limit=1');
      expect([statusCode, headers['retry-after']]).toEqual([503, '1']);
      expect(body).not.toMatch(/55000|pg_|select/);
    } finally {
      await allow(true);
      await admin.end();
    }
    expect((await list('limit=1')).events).toHaveLength(1);
  });
});
