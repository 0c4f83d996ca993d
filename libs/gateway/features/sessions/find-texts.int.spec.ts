import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type pg from 'pg';
import { sessionStream } from '@antiphon/contracts/agent';
import { createPool } from '@antiphon/database';
import { createPostgresEventStore, type EventStore, type EventStorePg } from '@antiphon/event-store';
import { createTestDatabase, type TestDatabase } from '@antiphon/testing';
import { findTexts } from './find-texts.js';

const at = '2026-11-22T10:00:00.000Z';
let database: TestDatabase;
let pool: pg.Pool;
let writer: pg.Pool;
let store: EventStore & EventStorePg;

beforeAll(async () => {
  database = await createTestDatabase();
  writer = createPool({ url: database.urlFor('agent'), applicationName: 'spec' });
  pool = createPool({ url: database.urlFor('gateway'), applicationName: 'spec' });
  store = createPostgresEventStore(writer);
});
afterAll(async () => {
  await Promise.all([pool?.end(), writer?.end()]);
  await database?.drop();
});

const append = async (sessionId: string, type: string, data: object): Promise<number> => {
  const event = { eventId: randomUUID(), type, schemaVersion: 1, data: { ...data, at } as never };
  const metadata = { correlationId: 'spec', service: 'agent' };
  const streamId = sessionStream(sessionId);
  const events = [{ ...event, metadata }];
  await store.append({ workspace: 'default', streams: [{ streamId, expectedVersion: 'any', events }] });
  return store.headPosition();
};
const ask = async (sessionId: string, content: string, answer: string) => {
  const turnId = randomUUID();
  const position = await append(sessionId, 'TurnRequested', { turnId, content });
  await append(sessionId, 'ModelCallCompleted', { turnId, text: answer });
  return { turnId, position };
};
const find = async (sessionId: string, text: string, upTo?: number) =>
  (await findTexts(pool, { workspace: 'default', sessionId, text, at: upTo })).found;

describe('a text of a session', () => {
  it('is found in messages and answers of this session alone, in their order, in any case', async () => {
    const [own, other] = [randomUUID(), randomUUID()];
    const first = await ask(own, 'When is LOW tide?', 'At six.');
    const second = await ask(own, 'and then?', 'The next low tide is at noon.');
    await ask(own, 'thanks', 'ok');
    await ask(other, 'low tide', 'low tide');
    expect(await find(own, 'low tide')).toEqual([first, second]);
    expect(await find(own, 'w tide?')).toEqual([first]);
    expect(await find(own, '%')).toEqual([]);
    expect(await find(own, 'low tide', first.position)).toEqual([first]);
    const foreign = findTexts(pool, { workspace: 'elsewhere', sessionId: own, text: 'low tide' });
    await expect(foreign).rejects.toMatchObject({ kind: 'not_found', code: 'SESSION.NOT_FOUND' });
    await expect(find(randomUUID(), 'low tide')).rejects.toMatchObject({ code: 'SESSION.NOT_FOUND' });
  });

  it('is that of the last edit, and is gone with a deletion', async () => {
    const own = randomUUID();
    const { turnId, position } = await ask(own, 'the ebb', 'the flood');
    const change = (type: string, part: string, content?: string) =>
      append(own, type, { turnId, part, content, actor: 'ada' });
    const edited = await change('ChatMessageEdited', 'message', 'the reef');
    expect(await find(own, 'ebb')).toEqual([]);
    expect(await find(own, 'ebb', edited - 1)).toEqual([{ turnId, position }]);
    expect(await find(own, 'reef')).toEqual([{ turnId, position }]);
    await change('ChatMessageDeleted', 'message');
    expect(await find(own, 'reef')).toEqual([]);
    // A deletion hides the text in the past too.
    expect(await find(own, 'reef', edited)).toEqual([]);
    expect(await find(own, 'flood')).toEqual([{ turnId, position }]);
    await change('ChatMessageDeleted', 'answer');
    expect(await find(own, 'flood')).toEqual([]);
  });
});
