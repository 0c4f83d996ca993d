import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type pg from 'pg';
import { foldHistory, sessionStream } from '@antiphon/contracts/agent';
import { createPool } from '@antiphon/database';
import { createPostgresEventStore, type EventStore, type EventStorePg } from '@antiphon/event-store';
import { createTestDatabase, type TestDatabase } from '@antiphon/testing';
import { findTurn } from './find-turn.js';
import { readHistory } from './read-history.js';
import { readTurns, type TurnsPage } from './read-turns.js';

const TURNS = 40;
const at = '2026-11-22T10:00:00.000Z';
const sessionId = randomUUID();
const ids = Array.from({ length: TURNS }, () => randomUUID());
let database: TestDatabase;
let pool: pg.Pool;
let writer: pg.Pool;
let store: EventStore & EventStorePg;

const fact = (type: string, data: object) => ({
  ...{ eventId: randomUUID(), type, schemaVersion: 1, data: data as never },
  metadata: { correlationId: 'spec', service: 'agent' },
});
const append = (...events: ReturnType<typeof fact>[]) =>
  store.append({
    workspace: 'default',
    streams: [{ streamId: sessionStream(sessionId), expectedVersion: 'any', events }],
  });
const request = (index: number) =>
  fact('TurnRequested', { turnId: ids[index], content: `question ${index}`, requestedAt: at });
const answer = (index: number) =>
  fact('ModelCallCompleted', {
    ...{
      turnId: ids[index],
      attempt: index + 1,
      step: 1,
      provider: 'p',
      model: 'm',
      frames: [],
      toolCalls: [],
    },
    ...{ reservationId: randomUUID(), text: `answer ${index}`, thought: '', finishReason: 'stop' },
    ...{ usage: { inputTokens: 1, outputTokens: 1, estimated: false }, costMicroUsd: 1, completedAt: at },
  });
const end = (index: number) => fact('TurnCompleted', { turnId: ids[index], completedAt: at });

beforeAll(async () => {
  database = await createTestDatabase();
  writer = createPool({ url: database.urlFor('agent'), applicationName: 'spec' });
  pool = createPool({ url: database.urlFor('gateway'), applicationName: 'spec' });
  store = createPostgresEventStore(writer);
  await append(
    fact('SessionStarted', { sessionId, sessionKey: 'main:web:a:b', agentId: 'main', startedAt: at }),
  );
  await append(request(0));
  // Each turn but the last is requested while the one before it is open.
  for (let n = 0; n < TURNS; n++) await append(answer(n), ...(n + 1 < TURNS ? [request(n + 1)] : []), end(n));
  const changed = { turnId: ids[3], actor: 'spec', at };
  await append(fact('ChatMessageEdited', { ...changed, part: 'message', content: 'edited' }));
  await append(fact('ChatMessageDeleted', { ...changed, turnId: ids[5], part: 'answer' }));
}, 30_000);
afterAll(async () => {
  await store.close();
  await Promise.all([pool.end(), writer.end()]);
  await database.drop();
});

const read = (query: Partial<Parameters<typeof readTurns>[1]> = {}): Promise<TurnsPage> =>
  readTurns(pool, { workspace: 'default', sessionId, limit: 7, ...query });

describe('the pages of the turns of a session', () => {
  it.each(['asc', 'desc'] as const)('have each turn once and whole, in the order %s', async (order) => {
    const seen: string[] = [];
    for (let cursor: string | undefined; ;) {
      const page = await read({ order, cursor });
      for (const { turnId, status, message, items } of page.turns) {
        seen.push(turnId);
        const index = ids.indexOf(turnId as (typeof ids)[number]);
        expect([index, status]).toEqual([index, 'completed']);
        expect(message.text).toBe(index === 3 ? 'edited' : `question ${index}`);
        expect(items.map((item) => (item.kind === 'text' ? item.text : ''))).toEqual(
          index === 5 ? [] : [`answer ${index}`],
        );
      }
      if (page.nextCursor === null) break;
      cursor = page.nextCursor;
    }
    expect(seen).toEqual(order === 'asc' ? ids : ids.toReversed());
  });

  it('are the same where many small reads make a page', async () => {
    const whole = await read({ order: 'asc', limit: 50 });
    expect(whole.turns).toHaveLength(TURNS);
    for (const readBytes of [1, 1_000])
      expect(await read({ order: 'asc', limit: 50, readBytes })).toEqual(whole);
  });

  it('are whole where a turn has more events than one read', async () => {
    const other = { workspace: 'default', sessionId: randomUUID(), limit: 7 };
    const streamId = sessionStream(other.sessionId);
    const add = (...events: ReturnType<typeof fact>[]) =>
      store.append({ workspace: 'default', streams: [{ streamId, expectedVersion: 'any', events }] });
    const { sessionId: id } = other;
    await add(fact('SessionStarted', { sessionId: id, sessionKey: 'k', agentId: 'main', startedAt: at }));
    await add(request(0), ...Array.from({ length: 700 }, () => answer(0)), end(0));
    const [turn] = (await readTurns(pool, other)).turns;
    expect([turn?.status, turn?.usage.calls]).toEqual(['completed', 700]);
  });

  it('jump to a turn by its number', async () => {
    const { turns } = await read({ order: 'asc', offset: 16, limit: 1 });
    expect(turns.map(({ turnId }) => turnId)).toEqual([ids[16]]);
  });

  it('show the past as of each position, where what was deleted since stays deleted', async () => {
    const log = await store.readStream('default', sessionStream(sessionId));
    const head = await store.headPosition();
    for (const { position } of log.filter((_, index) => index % 9 === 2)) {
      const page = await read({ order: 'asc', limit: 50, at: position });
      expect([page.position, page.head]).toEqual([position, head]);
      const past = log.filter((event) => event.position <= position);
      const count = (type: string) => past.filter((event) => event.type === type).length;
      expect(page.turns).toHaveLength(count('TurnRequested'));
      expect(page.turns.filter(({ status }) => status === 'completed')).toHaveLength(count('TurnCompleted'));
      expect(JSON.stringify(page.turns)).not.toContain('answer 5"');
      expect(page.turns[3]?.message.text).toBe(page.turns[3] && 'question 3');
    }
    await expect(read({ at: head + 1 })).rejects.toMatchObject({ code: 'LOG.POSITION_AHEAD' });
  });

  it('are not found in another workspace, or before the session began', async () => {
    await expect(read({ workspace: 'other' })).rejects.toMatchObject({ code: 'SESSION.NOT_FOUND' });
    await expect(read({ at: 0 })).rejects.toMatchObject({ code: 'SESSION.NOT_FOUND' });
  });
});

describe('a part of the history of a session', () => {
  const history = (query: Partial<Parameters<typeof readHistory>[1]> = {}) =>
    readHistory(pool, { workspace: 'default', sessionId, limit: 500, turns: 7, ...query });

  it('folds to what the server answers as of any position, from any snapshot and page', async () => {
    const head = await store.headPosition();
    const size = fc.integer({ min: 1, max: 50 });
    const place = fc.integer({ min: 0, max: head });
    await fc.assert(
      fc.asyncProperty(
        place,
        place,
        size,
        fc.integer({ min: 1, max: 90 }),
        async (one, other, turns, limit) => {
          const [from, to] = [Math.min(one, other), Math.max(one, other)];
          fc.pre(to > 0);
          const page = await history({ from, to, turns, limit });
          expect(page.position).toBeGreaterThanOrEqual(from);
          for (const at of new Set([from, Math.floor((from + page.position) / 2), page.position])) {
            if (at === 0) continue;
            const expected = await read({ at, limit: 50 });
            const folded = foldHistory(page, at).toReversed();
            // The snapshot has the latest turns only. All later turns are folded.
            expect(folded).toEqual(expected.turns.slice(0, folded.length));
            expect(folded.length).toBeGreaterThanOrEqual(Math.min(turns, expected.turns.length));
          }
        },
      ),
      { numRuns: 60 },
    );
  });

  it('is paged without a gap, and says where it ends', async () => {
    const head = await store.headPosition();
    const seen: number[] = [];
    for (let from = 0; ;) {
      const page = await history({ from, limit: 17 });
      seen.push(...page.events.map(({ version }) => version));
      if (page.isLast) {
        expect(page.position).toBe(head);
        break;
      }
      expect(page.events).toHaveLength(17);
      from = page.position;
    }
    expect(seen).toEqual(Array.from({ length: TURNS * 3 + 3 }, (_, index) => index + 1));
  });

  it('has no text that a person deleted, at no position and in no event', async () => {
    const page = await history();
    expect(page.deleted).toEqual([{ turnId: ids[5], part: 'answer' }]);
    expect(JSON.stringify(page)).not.toContain('answer 5"');
    expect(JSON.stringify(page)).toContain('answer 6"');
    expect(foldHistory(page, page.head)[5]).toMatchObject({ isAnswerDeleted: true, items: [] });
  });

  it('is not found in another workspace or before the session began, and ends at the head', async () => {
    await expect(history({ workspace: 'other' })).rejects.toMatchObject({ code: 'SESSION.NOT_FOUND' });
    await expect(history({ to: 0 })).rejects.toMatchObject({ code: 'SESSION.NOT_FOUND' });
    const beyond = (await store.headPosition()) + 1;
    for (const query of [{ to: beyond }, { from: beyond }])
      await expect(history(query)).rejects.toMatchObject({ code: 'LOG.POSITION_AHEAD' });
  });
});

describe('the session of a turn', () => {
  it('is found by an index, in its own workspace and from its position on', async () => {
    const find = (turn: string, at?: number, workspace = 'default') => findTurn(pool, workspace, turn, at);
    const log = await store.readStream('default', sessionStream(sessionId));
    const { position } = log.find(({ data, type }) => type === 'TurnRequested' && data['turnId'] === ids[9])!;
    expect(await find(ids[9]!)).toEqual({ turnId: ids[9], sessionId, firstPosition: position });
    expect(await find(ids[9]!, position)).toMatchObject({ sessionId, position });
    const missing = { code: 'TURN.NOT_FOUND' };
    await expect(find(ids[9]!, position - 1)).rejects.toMatchObject(missing);
    await expect(find(ids[9]!, undefined, 'other')).rejects.toMatchObject(missing);
    await expect(find(randomUUID())).rejects.toMatchObject(missing);
    await expect(find(randomUUID(), position + 1_000)).rejects.toMatchObject({ code: 'LOG.POSITION_AHEAD' });
  });
});
