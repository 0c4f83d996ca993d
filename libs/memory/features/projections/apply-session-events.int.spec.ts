import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Fact } from '@antiphon/contracts/memory';
import { acrossWorkspaces, inTransaction } from '@antiphon/database';
import { learnFacts } from '@antiphon/memory-domain';
import { applySessionEvents } from '@antiphon/memory-features';
import { WORKSPACE, openMemory } from '../memory-fixtures.spec.js';
import type { Conversation, MemoryFixture } from '../memory-fixtures.spec.js';
import { factIds, toSaid } from './session-memory.events.js';

let memory: MemoryFixture;
beforeAll(async () => {
  memory = await openMemory();
});
afterAll(() => memory.close());

const SENTENCES = [
  'my name is Ada',
  'my name is Eve',
  'I live in Oslo',
  'I live in Rome and my cat is Turing',
  'my cat is Turing',
  'hello',
];

/** Folds the whole log in plain code, by session key. */
const foldLog = async (): Promise<Map<string, readonly Fact[]>> => {
  const events = await memory.store.readLog({ after: 0, limit: 100_000 });
  const keys = new Map<string, string>();
  const facts = new Map<string, readonly Fact[]>();
  for (const event of events) {
    if (event.type === 'SessionStarted') keys.set(event.streamId, String(event.data['sessionKey']));
    if (event.type !== 'TurnRequested') continue;
    const key = keys.get(event.streamId) ?? '';
    facts.set(key, learnFacts(facts.get(key) ?? [], toSaid(event), factIds));
  }
  return facts;
};

const recallAll = async (talk: Conversation): Promise<readonly Fact[]> => {
  const { facts } = await memory.recallFacts({
    workspace: WORKSPACE,
    ...talk,
    atLeast: 'newest',
    includeSuperseded: true,
  });
  return facts;
};

describe('the projection', () => {
  afterEach(() => memory.project());

  it('equals the fold of the log for any batch size and after a rebuild', async () => {
    const said = fc.array(fc.tuple(fc.nat(2), fc.constantFrom(...SENTENCES)), {
      minLength: 1,
      maxLength: 12,
    });
    await fc.assert(
      fc.asyncProperty(said, fc.integer({ min: 1, max: 9 }), async (messages, batch) => {
        const talks = await Promise.all([0, 1, 2].map(() => memory.begin(`main:cli:me:${randomUUID()}`)));
        for (const [who, text] of messages) await memory.say(talks[who] as Conversation, text);
        await memory.project(batch);
        const folded = await foldLog();
        for (const talk of talks) expect(await recallAll(talk)).toEqual(folded.get(talk.sessionKey) ?? []);
        const live = await memory.rows();
        await memory.forget();
        await memory.project(50);
        expect(await memory.rows()).toEqual(live);
      }),
      { numRuns: 8 },
    );
  }, 60_000);

  it('merges the facts of two sessions of one key in the order of the log', async () => {
    const one = await memory.begin(`main:cli:me:${randomUUID()}`);
    const two = await memory.begin(one.sessionKey, one.sessionId);
    await memory.say(two, 'I live in Rome');
    await memory.say(one, 'I live in Oslo');
    await memory.project();
    expect((await recallAll(two)).map(({ object, supersededAt }) => [object, supersededAt === null])).toEqual(
      [
        ['Rome', false],
        ['Oslo', true],
      ],
    );
  });

  it('ignores streams and events without facts and records versions', async () => {
    const talk = await memory.begin(`main:cli:me:${randomUUID()}`);
    const version = await memory.say(talk, 'what is my name?');
    await memory.project();
    const { sessions } = await memory.rows();
    expect(sessions).toContainEqual(
      expect.objectContaining({ session_id: talk.sessionId, version: String(version) }),
    );
  });

  it('folds a key again when a parked stream is replayed late', async () => {
    const one = await memory.begin(`main:cli:me:${randomUUID()}`);
    const two = await memory.begin(one.sessionKey, one.sessionId);
    const before = await memory.store.headPosition();
    await memory.say(one, 'I live in Oslo and my cat is Turing');
    await memory.say(two, 'I live in Rome');
    const events = await memory.store.readLog({ after: before, limit: 100 });
    const eventsOfOne = events.filter(({ streamId }) => streamId === `session-${one.sessionId}`);
    await memory.project();
    const inOrder = await recallAll(two);
    // As if the first session had been parked.
    await acrossWorkspaces(memory.pool).query("delete from memory_facts where object in ('Oslo', 'Turing')");
    await inTransaction(memory.pool, (client) => applySessionEvents(client, eventsOfOne));
    expect(await recallAll(two)).toEqual(inOrder);
    expect(inOrder.map(({ object, supersededAt }) => [object, supersededAt === null])).toEqual([
      ['Oslo', false],
      ['Turing', true],
      ['Rome', true],
    ]);
  });

  it('rejects an event that breaks its contract', async () => {
    const talk = await memory.begin(`main:cli:me:${randomUUID()}`);
    await memory.project();
    const [event] = await memory.store.readLog({ after: 0, limit: 1 });
    const bad = {
      ...event,
      streamId: `session-${talk.sessionId}`,
      type: 'TurnRequested',
      data: { content: 7 },
    };
    const client = await memory.pool.connect();
    await expect(applySessionEvents(client, [bad as never])).rejects.toMatchObject({
      code: 'MEMORY.BAD_EVENT',
    });
    client.release();
  });
});
