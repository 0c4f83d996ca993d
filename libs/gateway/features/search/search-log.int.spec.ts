import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type pg from 'pg';
import { chatStream, sessionStream } from '@antiphon/contracts/agent';
import { createPool, inWorkspace } from '@antiphon/database';
import { createPostgresEventStore, type EventStore, type EventStorePg } from '@antiphon/event-store';
import { createTestDatabase, type TestDatabase } from '@antiphon/testing';
import { searchLog, type LogKind, type LogSearch } from './search-log.js';
import { excerptOf, toTextQuery, wordsOf } from './search-words.js';

const at = '2026-11-22T10:00:00.000Z';
const KINDS: readonly LogKind[] = ['message', 'answer', 'chat', 'task'];
let database: TestDatabase;
let pool: pg.Pool;
let writer: pg.Pool;
let store: EventStore & EventStorePg;

const append = (streamId: string, type: string, data: object, workspace = 'default') =>
  store.append({
    workspace,
    streams: [
      {
        streamId,
        expectedVersion: 'any',
        events: [
          {
            ...{ eventId: randomUUID(), type, schemaVersion: 1, data: data as never },
            metadata: { correlationId: 'spec', service: 'agent' },
          },
        ],
      },
    ],
  });

/** Appends a session with turns of a message and an answer. Returns its id and those of its turns. */
const converse = async (
  texts: readonly (readonly [message: string, answer: string])[],
  { workspace = 'default', chatId = null as string | null } = {},
) => {
  const sessionId = randomUUID();
  const stream = sessionStream(sessionId);
  const sessionKey = chatId === null ? 'main:web:a:b' : `main:chat:files:${chatId}`;
  const started = { sessionId, sessionKey, agentId: 'main', startedAt: at };
  await append(stream, 'SessionStarted', started, workspace);
  const turns: string[] = [];
  for (const [content, text] of texts) {
    const turnId = randomUUID();
    turns.push(turnId);
    await append(stream, 'TurnRequested', { turnId, content, requestedAt: at }, workspace);
    await append(stream, 'ModelCallCompleted', { turnId, text, completedAt: at }, workspace);
  }
  return { sessionId, stream, turns };
};

const search = async (q: string, more: Partial<LogSearch> = {}, now = () => 0) => {
  const words = wordsOf(q);
  const upTo = more.upTo ?? (await store.headPosition());
  const workspace = more.workspace ?? 'default';
  const query = toTextQuery(words) ?? '';
  const asked = { workspace, query, words, kinds: KINDS, limit: 20, upTo, from: upTo, ...more };
  return searchLog(inWorkspace(pool, workspace), asked, now);
};
const find = async (q: string, more: Partial<LogSearch> = {}) =>
  (await search(q, more)).results.map(({ kind, id }) => `${kind} ${id}`);

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

describe('a search of the log', () => {
  it('finds messages and answers by words, their beginnings and parts of paths, in any case', async () => {
    const { sessionId, turns } = await converse([
      ['When is Low Tide at Husum?', 'At 6:10, by notes/harbour-2026.md; 干潮は朝です.'],
    ]);
    const [message, answer] = [`message ${turns[0]}`, `answer ${turns[0]}`];
    expect(await find('husum')).toEqual([message]);
    expect(await find('TIDE low')).toEqual([message]);
    expect(await find('hus')).toEqual([message]);
    for (const text of ['harbour-2026.md', 'harbour', 'notes/harbour', '干潮', '潮は朝'])
      expect([text, await find(text)]).toEqual([text, [answer]]);
    for (const text of ['usum', '朝干', 'husum harbour', 'nothing']) expect(await find(text)).toEqual([]);
    const [result] = (await search('husum')).results;
    expect(result).toMatchObject({
      ...{ title: 'When is Low Tide at Husum?', text: 'When is Low Tide at Husum?' },
      ...{ sessionId, agentId: 'main', chatId: null },
    });
    const [found] = (await search('harbour')).results;
    expect(found).toMatchObject({ kind: 'answer', turnPosition: result?.position });
    expect(found?.position).toBeGreaterThan(Number(result?.position));
  });

  it('finds neither deleted texts, at any position, nor replaced ones', async () => {
    const { stream, turns } = await converse([
      ['secretword one', 'fine'],
      ['oldword two', 'fine'],
    ]);
    const before = await store.headPosition();
    const change = { part: 'message', actor: 'spec', at };
    await append(stream, 'ChatMessageDeleted', { turnId: turns[0], ...change });
    await append(stream, 'ChatMessageEdited', { turnId: turns[1], content: 'newword two', ...change });
    expect(await find('secretword')).toEqual([]);
    expect(await find('secretword', { upTo: before, from: before })).toEqual([]);
    expect(await find('oldword')).toEqual([]);
    expect(await find('oldword', { upTo: before, from: before })).toEqual([`message ${turns[1]}`]);
    expect(await find('newword')).toEqual([`message ${turns[1]}`]);
    await append(stream, 'ChatMessageDeleted', { turnId: turns[1], ...change });
    expect(await find('newword')).toEqual([]);
    const [other] = (await search('fine', { kinds: ['answer'] })).results;
    expect(other?.title).toBe('');
  });

  it('finds chats by their current name, and nothing of a deleted chat', async () => {
    const chatId = randomUUID();
    const { sessionId, turns } = await converse([['chatted words', 'ok']], { chatId });
    const chat = { chatId, sessionId, agentId: 'main', path: 'x.chat', name: 'firstname' };
    await append(chatStream(chatId), 'ChatCreated', chat);
    expect(await find('firstname')).toEqual([`chat ${chatId}`]);
    await append(chatStream(chatId), 'ChatRenamed', { ...chat, name: 'secondname', before: 'firstname' });
    expect(await find('firstname')).toEqual([]);
    expect(await find('secondname')).toEqual([`chat ${chatId}`]);
    expect((await search('chatted')).results).toMatchObject([{ id: turns[0], title: 'secondname' }]);
    await append(chatStream(chatId), 'ChatDeleted', { chatId, actor: 'spec', at });
    expect(await find('secondname')).toEqual([]);
    expect(await find('chatted')).toEqual([]);
  });

  it('finds tasks by title and prompt', async () => {
    const taskId = randomUUID();
    const task = { taskId, title: 'Collect buoys', prompt: 'List every lighthouse', agentId: null };
    await append(`task-${taskId}`, 'TaskQueued', task);
    expect(await find('buoys')).toEqual([`task ${taskId}`]);
    expect(await find('lighthouse collect')).toEqual([`task ${taskId}`]);
    expect(await find('buoys', { kinds: ['message'] })).toEqual([]);
  });

  it('stays in its workspace', async () => {
    await converse([['foreignword', 'x']], { workspace: 'other' });
    expect(await find('foreignword')).toEqual([]);
    expect(await find('foreignword', { workspace: 'other' })).toHaveLength(1);
  });

  it('returns each result once over all pages, newest first', async () => {
    const { turns } = await converse(Array.from({ length: 7 }, (_, n) => [`paged ${n}`, 'y'] as const));
    const found: string[] = [];
    let from = await store.headPosition();
    while (from > 0) {
      const page = await search('paged', { from, limit: 3 });
      found.push(...page.results.map(({ id }) => id));
      from = page.searchedTo;
    }
    expect(found).toEqual(turns.toReversed());
  });

  it('ends with what it has when its time is over', async () => {
    let time = 0;
    const found = await search('paged', {}, () => (time += 3_000));
    expect(found).toEqual({ results: [], searchedTo: await store.headPosition() });
  });

  it.each([`'`, `\\`, `' | 'x`, `a:*`, `!&|()<->`, '“”', '🌊', '\ud800', 'x'.repeat(200), ' '.repeat(3)])(
    'takes the hostile text %j as words',
    async (text) => {
      await expect(search(text)).resolves.toMatchObject({ results: expect.any(Array) });
    },
  );
});

describe('the words of an event', () => {
  const MAX = 1_000_000;

  it.each([
    ['one letter', 'a'],
    ['letters without ASCII', 'ä'],
    ['single characters', '潮'],
    ['numbers', '1 2.5e7 '],
    ['addresses', 'http://a.b/c?d=e&f '],
    ['different words', (n: number) => `w${n} `],
    ['quotes of other languages', '“”'],
    ['emoji', '🌊'],
  ])('of a million characters of %s are computed in a second', async (_name, piece) => {
    const content =
      typeof piece === 'string'
        ? piece.repeat(MAX / piece.length)
        : Array.from({ length: MAX / 8 }, (_, n) => piece(n)).join('');
    const words = `select length(antiphon_search_words(antiphon_search_text('TurnRequested',
      jsonb_build_object('content', $1::text)))) as words`;
    const startedAt = performance.now();
    const { rows } = await writer.query<{ words: number }>(words, [content]);
    expect(rows[0]?.words).toBeLessThanOrEqual(100_000);
    expect(performance.now() - startedAt).toBeLessThan(1_000);
  });
});

describe('an excerpt', () => {
  it('is one line around the first word, with marks where it was cut', () => {
    const text = `${'before '.repeat(40)}the\nTide rises${' after'.repeat(40)}`;
    const excerpt = excerptOf(text, ['tide']);
    expect(excerpt).toMatch(/^….* the Tide rises after .*…$/);
    expect(excerpt.length).toBeLessThan(250);
  });
});
