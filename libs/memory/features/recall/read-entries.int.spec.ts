import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { indexConditions } from '@antiphon/testing';
import { openMemory } from '../memory-fixtures.spec.js';
import type { MemoryFixture } from '../memory-fixtures.spec.js';
import { SESSION_SQL, TURNS_SQL } from './read-entries.js';

let memory: MemoryFixture;
beforeAll(async () => {
  memory = await openMemory();
});
afterAll(() => memory.close());

describe('EntryReader', () => {
  it.each([
    ['the first event of a session', SESSION_SQL],
    ['the turns of an entry', TURNS_SQL],
  ])('reads %s by the stream, not from the whole log', async (_what, sql) => {
    const conditions = await indexConditions(memory.database, 'memory', sql);
    expect(conditions).toContainEqual(expect.stringMatching(/\(workspace = .*\(stream_id = /));
  });
});
