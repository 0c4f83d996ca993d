import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { indexConditions } from '@antiphon/testing';
import { openMemory } from '../memory-fixtures.spec.js';
import type { MemoryFixture } from '../memory-fixtures.spec.js';
import { RECALL_SQL } from '../context/recall-rows.js';
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

  // The tables of a new database have no statistics until an analyze.
  it.each([
    ['a session by its id', SESSION_SQL, /\(session_id = /],
    [
      'the sessions of a key',
      TURNS_SQL,
      /\(key_hash = f.key_hash\) AND \(workspace = |\(\(key_hash = f.key_hash\)/,
    ],
    ['the session of a context', RECALL_SQL, /\(session_id = q.session_id\)/],
  ])('reads %s by its index before the first analyze', async (_what, sql, condition) => {
    const conditions = await indexConditions(memory.database, 'memory', sql);
    expect(conditions).toContainEqual(expect.stringMatching(condition));
  });
});
