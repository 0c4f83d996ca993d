// Fixtures of the specs of this folder; not a test itself.
import { randomUUID } from 'node:crypto';
import { sessionStream } from '@antiphon/contracts/agent';
import type { SessionEvent } from '@antiphon/contracts/agent';
import { acrossWorkspaces, createPool } from '@antiphon/database';
import { createPostgresEventStore, runProjection } from '@antiphon/event-store';
import type { JsonObject } from '@antiphon/kernel';
import { silentLogger } from '@antiphon/observability';
import { createTestDatabase } from '@antiphon/testing';
import { PROJECTION_NAME, applySessionEvents, createRecallFacts } from '@antiphon/memory-features';

export const WORKSPACE = 'default';

export interface Conversation {
  readonly sessionId: string;
  readonly sessionKey: string;
}

/** Opens a database with the agent's event store and memory's pool. */
export const openMemory = async () => {
  const database = await createTestDatabase();
  const agentPool = createPool({ url: database.urlFor('agent'), applicationName: 'spec-agent', max: 2 });
  const memoryUrl = database.urlFor('memory');
  const pool = createPool({ url: memoryUrl, applicationName: 'spec-memory', max: 4 });
  const store = createPostgresEventStore(agentPool);
  let time = Date.parse('2026-11-21T10:00:00.000Z');
  const tick = (): string => new Date((time += 1_000)).toISOString();

  const append = async (sessionId: string, events: readonly SessionEvent[]): Promise<number> => {
    const { versions } = await store.append({
      workspace: WORKSPACE,
      streams: [
        {
          streamId: sessionStream(sessionId),
          expectedVersion: 'any',
          events: events.map(({ type, schemaVersion, data }) => ({
            eventId: randomUUID(),
            type,
            schemaVersion,
            data: data as JsonObject,
            metadata: { correlationId: 'spec', service: 'agent' },
          })),
        },
      ],
    });
    return versions[0] ?? 0;
  };

  const begin = async (sessionKey: string, previousSessionId?: string): Promise<Conversation> => {
    const sessionId = randomUUID();
    const data = { sessionId, sessionKey, agentId: 'main', startedAt: tick() };
    const previous = previousSessionId === undefined ? {} : { previousSessionId };
    await append(sessionId, [{ type: 'SessionStarted', schemaVersion: 1, data: { ...data, ...previous } }]);
    return { sessionId, sessionKey };
  };

  /** Appends one complete turn; returns the stream's version after it. */
  const say = async ({ sessionId }: Conversation, content: string): Promise<number> => {
    const turnId = randomUUID();
    return append(sessionId, [
      { type: 'TurnRequested', schemaVersion: 1, data: { turnId, content, requestedAt: tick() } },
      { type: 'TurnCompleted', schemaVersion: 1, data: { turnId, completedAt: tick() } },
    ]);
  };

  /** Runs the projection up to the log's head, `batchSize` events a transaction. */
  const project = async (batchSize = 100): Promise<void> => {
    const projection = runProjection({
      pool,
      name: PROJECTION_NAME,
      categories: ['session'],
      handle: applySessionEvents,
      logger: silentLogger,
      batchSize,
    });
    await projection.waitForPosition(await store.headPosition());
    await projection.stop();
  };

  const rows = async () => {
    const facts = await acrossWorkspaces(pool).query<Record<string, unknown>>(
      'select * from memory_facts order by position, ordinal',
    );
    const sessions = await acrossWorkspaces(pool).query<Record<string, unknown>>(
      'select * from memory_sessions order by session_id',
    );
    return { facts: facts.rows, sessions: sessions.rows };
  };

  const forget = async (): Promise<void> => {
    await acrossWorkspaces(pool).query('delete from memory_facts');
    await acrossWorkspaces(pool).query('delete from memory_sessions');
    await acrossWorkspaces(pool).query('update projection_checkpoints set position = 0 where name = $1', [
      PROJECTION_NAME,
    ]);
  };

  const close = async (): Promise<void> => {
    await store.close();
    await Promise.all([agentPool.end(), pool.end()]);
    await database.drop();
  };

  return {
    database,
    memoryUrl,
    pool,
    store,
    append,
    begin,
    say,
    project,
    rows,
    forget,
    close,
    recallFacts: createRecallFacts(pool),
  };
};
export type MemoryFixture = Awaited<ReturnType<typeof openMemory>>;
