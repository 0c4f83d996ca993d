import { afterEach, beforeEach } from '@jest/globals';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import { ALL_WORKSPACES, createPool } from '@antiphon/database';
import { createTestDatabase, freshStream, newEvent, toStream } from '@antiphon/testing';
import type { TestDatabase } from '@antiphon/testing';
import type { EventStore } from '../event-store.port.js';
import { createPostgresEventStore } from '../postgres-event-store.js';

export const RULES = [
  { category: 'session', retainedPrefix: 'session-key-', pairs: [{ begins: ['Asked'], ends: ['Answered'] }] },
];
export const W = 'default';

export let database: TestDatabase;
export let admin: pg.Pool;
export let agent: pg.Pool;
export let archiver: pg.Pool;
export let store: EventStore & { close(): Promise<void> };
export let folder: string;

/** Gives each spec a database, pools by role, and a folder of archive files. */
export const inArchiveWorld = (): void => {
  beforeEach(async () => {
    database = await createTestDatabase();
    admin = createPool({ url: database.url, applicationName: 'spec', max: 2 });
    agent = createPool({ url: database.urlFor('agent'), applicationName: 'spec-agent', max: 3 });
    archiver = createPool({
      ...{ url: database.urlFor('archiver'), applicationName: 'spec-archiver', max: 2 },
      workspace: ALL_WORKSPACES,
    });
    store = createPostgresEventStore(agent);
    folder = await mkdtemp(join(tmpdir(), 'antiphon-archive-'));
  });
  afterEach(async () => {
    await store.close();
    await Promise.all([admin.end(), agent.end(), archiver.end()]);
    await database.drop();
    await rm(folder, { recursive: true });
  });
};

export const everything = async () =>
  (
    await admin.query<{ text: string }>(`select to_jsonb(e)::text as text from events e order by position`)
  ).rows.map(({ text }) => text);
export const append = (streamId: string, count: number, expected: number | 'any' = 'any') =>
  store.append({ workspace: W, streams: [toStream(streamId, expected, count)] });
export const say = (streamId: string, type: string) =>
  store.append({
    workspace: W,
    streams: [{ streamId, expectedVersion: 'any', events: [newEvent({}, { type })] }],
  });
/**
 * Appends three old streams, one that is not at rest, one that grows later, and the newest event.
 */
export const fill = async () => {
  const [old, older, open, growing] = [freshStream(), freshStream(), freshStream(), freshStream()];
  const binding = `session-key-${old.slice(8)}`;
  for (const [stream, count] of [
    [older, 2],
    [old, 5],
    [binding, 1],
    [growing, 3],
  ] as const)
    await append(stream, count);
  await say(open, 'Asked');
  const cut = await store.headPosition();
  await append(growing, 1);
  return { old, older, open, growing, binding, cut };
};
