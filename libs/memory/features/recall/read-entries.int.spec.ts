import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createPool } from '@antiphon/database';
import { indexConditions } from '@antiphon/testing';
import { openMemory } from '../memory-fixtures.spec.js';
import type { MemoryFixture } from '../memory-fixtures.spec.js';
import { RECALL_SQL } from '../context/recall-rows.js';
import { LIST_SQL, SESSION_SQL, TURNS_SQL } from './read-entries.js';

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

  it('lists the newest entries of an agent in the order of an index, not by a sort of all', async () => {
    const admin = createPool({ url: memory.database.url, applicationName: 'spec', max: 1 });
    await admin.query(`insert into memory_sessions
        select 'filled', gen_random_uuid(), i::text, sha256(i::text::bytea), 'main', 3 from generate_series(1, 3000) i;
      insert into memory_facts select 'filled', gen_random_uuid(), sha256(i::text::bytea), 'user', 'name', 'Ada', 0.9,
        now(), null, gen_random_uuid(), i, 0 from generate_series(1, 3000) i;
      analyze memory_sessions; analyze memory_facts`);
    await admin.end();
    const conditions = await indexConditions(memory.database, 'memory', LIST_SQL.agent);
    expect(conditions).toContainEqual(expect.stringMatching(/\(workspace = .*\("?position"? <= \$3\)\)$/));
  });
});
