import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { sessionStream, taskStream } from '@antiphon/contracts/agent';
import { createPool } from '@antiphon/database';
import { createTestDatabase } from '@antiphon/testing';
import type { TestDatabase } from '@antiphon/testing';

const READER = fileURLToPath(new URL('fixtures/open-tasks.mjs', import.meta.url));
const BIG_EVENTS = Number(process.env['ANTIPHON_BIG_EVENTS'] ?? 60);
const MAX_RESIDENT_MIB = 3 * BIG_EVENTS > 800 ? 400 : Infinity;
const BATCH = 20;
const FILL_SQL = `insert into events (position, workspace, category, stream_id, stream_version, event_id, type,
    schema_version, data, metadata, recorded_at, hash)
  select $1 + n, 'default', $3, $4, $5 + n, gen_random_uuid(), $6, 1,
    $7::jsonb || case when $8 then jsonb_build_object('text', odd.text) else '{}' end, '{}', now(), ''
  from generate_series(1, $2) n,
    (select string_agg(md5(i::text), '') as text from generate_series(1, 31250) i) odd`;

const [taskId, turnId] = [randomUUID(), randomUUID()];
const at = '2026-11-26T10:00:00.000Z';
const queued = {
  ...{ taskId, title: 'large', prompt: 'p', agentId: 'main', capabilities: [], priority: 5, project: null },
  ...{ parentAgentId: null, parentTaskId: null, deadline: null, budget: null, actor: 'key/spec', at },
  retry: { strikes: 3, backoffMs: 1_000 },
};

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  const admin = createPool({ url: database.url, applicationName: 'spec', statementTimeoutMs: 60_000 });
  let position = 0;
  const fill = async (stream: string, version: number, type: string, data: object, count = 0) => {
    const category = stream.slice(0, stream.indexOf('-'));
    for (let n = 0; n < Math.max(count, 1); n += BATCH) {
      const rows = count === 0 ? 1 : Math.min(BATCH, count - n);
      const values = [position, rows, category, stream, version + n, type, JSON.stringify(data), count > 0];
      await admin.query(FILL_SQL, values);
      position += rows;
    }
  };
  await fill(taskStream(taskId), 0, 'TaskQueued', queued);
  // Events of a type that a later version may write: they are read and not applied.
  await fill(taskStream(taskId), 1, 'TaskAnnotated', { taskId }, BIG_EVENTS);
  await fill(sessionStream(taskId), 0, 'TurnRequested', { turnId });
  await fill(sessionStream(taskId), 1, 'ModelCallCompleted', { turnId: randomUUID() }, BIG_EVENTS);
  await fill(sessionStream(taskId), 1 + BIG_EVENTS, 'TurnFailed', { turnId, code: 'C', message: 'm' });
  const after = 2 + BIG_EVENTS;
  await fill(sessionStream(taskId), after, 'ModelCallCompleted', { turnId: randomUUID() }, BIG_EVENTS);
  await admin.end();
}, 120_000);
afterAll(() => database?.drop());

describe('the agent', () => {
  it(`follows ${BIG_EVENTS} events of 1 MB of a task, and of a session, in a process with a heap of 96 MiB`, async () => {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['--max-old-space-size=96', '--single-threaded-gc', READER, database.urlFor('agent'), taskId, turnId],
      { env: { PATH: process.env['PATH'] } },
    );
    const { isKnown, outcome, peakMiB } = JSON.parse(stdout) as Record<string, unknown>;
    expect(isKnown).toBe(true);
    expect(outcome).toEqual({ kind: 'failed', code: 'C', cause: { kind: 'text', text: 'm' } });
    // The heap is the first bound: the process ends where it keeps the events. This one is for
    // buffers outside of it. The part `large-events` of the nightly run reads 900 MB.
    expect(peakMiB).toBeLessThan(MAX_RESIDENT_MIB);
  }, 120_000);
});
