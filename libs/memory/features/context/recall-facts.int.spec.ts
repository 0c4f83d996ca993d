import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Fact } from '@antiphon/contracts/memory';
import type { SessionQuestion } from '@antiphon/memory-features';
import { indexConditions } from '@antiphon/testing';
import { WORKSPACE, openMemory } from '../memory-fixtures.spec.js';
import type { Conversation, MemoryFixture } from '../memory-fixtures.spec.js';
import { RECALL_SQL } from './recall-rows.js';

let memory: MemoryFixture;
beforeAll(async () => {
  memory = await openMemory();
});
afterAll(() => memory.close());

const key = (): string => `main:cli:me:${randomUUID()}`;
const shown = (facts: readonly Fact[]): string[] =>
  facts.map(({ predicate, object }) => `${predicate}: ${object}`);
const ask = ({ sessionId, sessionKey }: Conversation, more: Partial<SessionQuestion> = {}) =>
  memory.recallFacts({
    workspace: WORKSPACE,
    sessionId,
    sessionKey,
    atLeast: 0,
    includeSuperseded: false,
    ...more,
  });

describe('recall with an up-to-date projection', () => {
  it('returns the facts in force, and superseded ones on request', async () => {
    const talk = await memory.begin(key());
    await memory.say(talk, 'My name is Ada and I live in London');
    const version = await memory.say(talk, 'I live in Paris now');
    await memory.project();
    const { facts, version: seen } = await ask(talk, { atLeast: version });
    expect(seen).toBe(version);
    expect(shown(facts)).toEqual(['name: Ada', 'lives in: Paris']);
    const all = await ask(talk, { includeSuperseded: true });
    expect(shown(all.facts)).toEqual(['name: Ada', 'lives in: London', 'lives in: Paris']);
  });

  it('separates keys and workspaces', async () => {
    const mine = await memory.begin(key());
    const other = await memory.begin(key());
    await memory.say(mine, 'my name is Ada');
    await memory.project();
    expect((await ask(other)).facts).toEqual([]);
    expect((await ask({ ...mine, sessionId: randomUUID() }, { workspace: 'elsewhere' })).facts).toEqual([]);
  });

  it('accepts keys of any length', async () => {
    const talk = await memory.begin(`main:${'%E2%82%AC'.repeat(600)}:a:b`);
    await memory.say(talk, 'my name is Ada');
    await memory.project();
    expect(shown((await ask(talk)).facts)).toEqual(['name: Ada']);
  });
});

describe('recall while the projection lags', () => {
  it('folds the later events of the stream onto the rows', async () => {
    const talk = await memory.begin(key());
    await memory.say(talk, 'my name is Ada. I live in London');
    await memory.project();
    const version = await memory.say(talk, 'I live in Paris. My cat is Turing');
    const { facts, version: seen } = await ask(talk, { atLeast: version });
    expect(seen).toBe(version);
    expect(shown(facts)).toEqual(['name: Ada', 'lives in: Paris', 'cat: Turing']);
  });

  it('returns the same facts and ids before and after the projection catches up', async () => {
    const talk = await memory.begin(key());
    const version = await memory.say(
      talk,
      'my name is Ada, my cat is Turing. I live in Oslo. I live in Rome',
    );
    const before = await ask(talk, { atLeast: version, includeSuperseded: true });
    await memory.project();
    expect(await ask(talk, { atLeast: version, includeSuperseded: true })).toEqual(before);
  });

  it('carries facts over `/new` when neither session is projected', async () => {
    const first = await memory.begin(key());
    await memory.say(first, 'my name is Ada');
    const second = await memory.begin(first.sessionKey, first.sessionId);
    await memory.say(second, 'my cat is Turing');
    const third = await memory.begin(first.sessionKey, second.sessionId);
    const version = await memory.say(third, 'what is my name?');
    expect(shown((await ask(third, { atLeast: version })).facts)).toEqual(['name: Ada', 'cat: Turing']);
    await memory.project();
    expect(shown((await ask(third, { atLeast: version })).facts)).toEqual(['name: Ada', 'cat: Turing']);
  });

  it('carries both halves of an earlier session that is projected in part', async () => {
    const first = await memory.begin(key());
    await memory.say(first, 'my name is Ada');
    await memory.project();
    await memory.say(first, 'my name is Eve');
    const second = await memory.begin(first.sessionKey, first.sessionId);
    expect(shown((await ask(second, { atLeast: 1 })).facts)).toEqual(['name: Eve']);
  });

  it('rejects a version that is not committed', async () => {
    const talk = await memory.begin(key());
    await expect(ask(talk, { atLeast: 2 })).rejects.toMatchObject({
      kind: 'transient',
      code: 'MEMORY.VERSION_AHEAD',
      data: { version: 1, atLeast: 2 },
    });
  });

  it('returns the facts of the key for a session about to start', async () => {
    const talk = await memory.begin(key());
    await memory.say(talk, 'my name is Ada');
    await memory.project();
    const next = await ask({ ...talk, sessionId: randomUUID() });
    expect(next).toMatchObject({ version: 0, facts: [{ object: 'Ada' }] });
  });
});

describe('recall without a key', () => {
  it('finds the key in the rows, or in the stream of a session without rows', async () => {
    const first = await memory.begin(key());
    await memory.say(first, 'my name is Ada');
    await memory.project();
    const second = await memory.begin(first.sessionKey);
    const question = { sessionKey: null, atLeast: 'newest' } as const;
    expect(shown((await ask({ ...first }, question as never)).facts)).toEqual(['name: Ada']);
    expect(shown((await ask({ ...second }, question as never)).facts)).toEqual(['name: Ada']);
  });

  it('rejects an unknown session', () =>
    expect(
      memory.recallFacts({
        workspace: WORKSPACE,
        sessionId: randomUUID(),
        sessionKey: null,
        atLeast: 'newest',
        includeSuperseded: false,
      }),
    ).rejects.toMatchObject({ kind: 'not_found', code: 'MEMORY.SESSION_UNKNOWN' }));
});

describe('recall of several sessions at once', () => {
  it('answers each question with its own facts, or its own error', async () => {
    const talks = await Promise.all(Array.from({ length: 40 }, () => memory.begin(key())));
    for (const [index, talk] of talks.entries()) await memory.say(talk, `my name is Name${index}`);
    await memory.project();
    const late = await memory.say(talks[3] as Conversation, 'I live in Paris');
    const answers = await Promise.allSettled(
      talks.map((talk, index) => ask(talk, { atLeast: index === 3 ? late : index === 7 ? 99 : 0 })),
    );
    for (const [index, answer] of answers.entries()) {
      const names = [`name: Name${index}`, ...(index === 3 ? ['lives in: Paris'] : [])];
      if (answer.status === 'fulfilled') expect(shown(answer.value.facts)).toEqual(names);
      else expect([index, answer.reason]).toMatchObject([7, { code: 'MEMORY.VERSION_AHEAD' }]);
    }
    expect(answers.filter(({ status }) => status === 'rejected')).toHaveLength(1);
  });

  it('reads facts by key and events from a version, each from an index', async () => {
    const conditions = await indexConditions(memory.database, 'memory', RECALL_SQL);
    expect(conditions).toContainEqual(expect.stringContaining('(key_hash ='));
    expect(conditions).toContainEqual(expect.stringContaining('(stream_version >'));
  });
});
