import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { BelievedFacts } from '@antiphon/memory-features';
import { WORKSPACE, openMemory } from '../memory-fixtures.spec.js';
import type { MemoryFixture } from '../memory-fixtures.spec.js';

let memory: MemoryFixture;
beforeAll(async () => {
  memory = await openMemory();
});
afterAll(() => memory.close());

const recall = async (sessionId: string, sessionKey: string, atLeast: number) => {
  const question = { workspace: WORKSPACE, sessionId, sessionKey, atLeast, includeSuperseded: false };
  return (await memory.recallFacts(question)).facts;
};

describe('BelievedFacts', () => {
  it('returns the facts in force at a position, which a fork inherits', async () => {
    const believed = new BelievedFacts(memory.pool);
    const talk = await memory.begin(`main:cli:me:${randomUUID()}`);
    await memory.say(talk, 'my favorite color is teal. I live in Oslo');
    const position = await memory.store.headPosition();
    await memory.say(talk, 'my favorite color is red');
    await memory.project();
    const { facts } = await believed.handle({ workspace: WORKSPACE, sessionKey: talk.sessionKey, position });
    expect(facts.map(({ object, supersededAt }) => [object, supersededAt])).toEqual([
      ['teal', null],
      ['Oslo', null],
    ]);

    const fork = await memory.begin(`main:fork:${talk.sessionId}:${randomUUID()}`);
    const origin = { sessionId: talk.sessionId, version: 3, hash: '0'.repeat(64) };
    const inherited = facts.map(({ factId: _, supersededAt: __, ...fact }) => fact);
    const version = await memory.append(fork.sessionId, [
      {
        ...{ type: 'SessionForked', schemaVersion: 1 },
        data: {
          ...{ sessionId: fork.sessionId, origin, purpose: 'fork', recent: [], facts: inherited },
          forkedAt: '2026-11-22T10:00:00.000Z',
        },
      },
    ]);
    const early = await recall(fork.sessionId, fork.sessionKey, version);
    await memory.project();
    expect(await recall(fork.sessionId, fork.sessionKey, version)).toEqual(early);
    expect(early.map(({ object, sourceEventId }) => ({ object, sourceEventId }))).toEqual(
      facts.map(({ object, sourceEventId }) => ({ object, sourceEventId })),
    );
    // The fork and the original learn separately from here.
    await memory.say(fork, 'I live in Rome');
    await memory.project();
    const objects = async (talking: typeof talk) =>
      (await recall(talking.sessionId, talking.sessionKey, 1)).map(({ object }) => object).sort();
    expect(await objects(fork)).toEqual(['Rome', 'teal']);
    expect(await objects(talk)).toEqual(['Oslo', 'red']);
    // A rebuild gives the same rows.
    const rows = await memory.rows();
    await memory.forget();
    await memory.project();
    expect(await memory.rows()).toEqual(rows);
  });
});
