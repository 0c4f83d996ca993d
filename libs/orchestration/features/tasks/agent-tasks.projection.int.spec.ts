import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import pg from 'pg';
import type { RecordedEvent } from '@antiphon/event-store';
import { createTestDatabase, indexConditions, type TestDatabase } from '@antiphon/testing';
import { projectTasks } from './agent-tasks.projection.js';
import { LOAD_TASKS_SQL } from './task-rows.js';

jest.setTimeout(60_000);

const GOLDEN = fileURLToPath(new URL('../../../contracts/events/golden', import.meta.url));
const golden = (name: string): Pick<RecordedEvent, 'type' | 'schemaVersion' | 'data'> =>
  JSON.parse(readFileSync(`${GOLDEN}/${name}.v1.json`, 'utf8'));

let database: TestDatabase;
let client: pg.Client;
let position = 0;
beforeAll(async () => {
  database = await createTestDatabase();
  client = new pg.Client({ connectionString: database.urlFor('agent'), pipeline: true });
  await client.connect();
  await client.query(`set antiphon.workspace = '*'`);
});
afterAll(async () => {
  await client.end();
  await database.drop();
});

const recorded = (
  name: string,
  streamId: string,
  data: Record<string, unknown>,
  workspace = 'default',
): RecordedEvent => {
  const [category = ''] = name.split('/');
  const event = golden(name);
  return {
    ...event,
    data: { ...event.data, ...data } as RecordedEvent['data'],
    ...{ position: ++position, workspace, category, streamId, streamVersion: position },
    ...{ eventId: randomUUID(), recordedAt: '2026-11-26T10:00:00.000Z', hash: '' },
    metadata: { correlationId: 'spec', service: 'agent' },
  };
};

/** Returns all rows without their position, in order. */
const rows = async (): Promise<unknown[]> =>
  (await client.query(`select * from agent_tasks order by workspace, id`)).rows.map(
    ({ first_position: _, ...row }) => row,
  );

/** Applies events in batches of these sizes in a transaction without a commit. Returns the rows. */
const fold = async (events: readonly RecordedEvent[], sizes: readonly number[]): Promise<unknown[]> => {
  await client.query('begin');
  try {
    const rest = [...events];
    for (let batch = 0; rest.length > 0; batch++)
      await projectTasks(client, rest.splice(0, sizes[batch] ?? rest.length));
    return await rows();
  } finally {
    await client.query('rollback');
  }
};

const RUN_STEPS = ['TaskStarted', 'TaskAttemptFailed', 'TaskCompleted', 'TaskFailed', 'TaskCancelled'];
const RUN_ENDS = ['RunCompleted', 'RunFailed', 'RunCancelled'];
const TASK_STEPS = ['TaskAssigned', 'TaskBegun', 'TaskRequeued', 'TaskEnded', 'TaskCancelRequested'];
const NODES = ['a', 'b', 'c'];
const node = golden('run/RunStarted').data['definition'] as { nodes: object[] };
const definition = { ...node, nodes: NODES.map((id) => ({ ...node.nodes[0], id, needs: [] })) };

const ids = Array.from({ length: 4 }, () => randomUUID());
/** Any event of a few tasks and runs, also before the first event of its task. */
const step = fc
  .record({
    id: fc.constantFrom(...ids),
    workspace: fc.constantFrom('default', 'other'),
    type: fc.constantFrom(
      ...['task/TaskQueued', ...TASK_STEPS.map((type) => `task/${type}`)],
      ...['run/RunStarted', ...[...RUN_STEPS, ...RUN_ENDS].map((type) => `run/${type}`)],
    ),
    nodeId: fc.constantFrom(...NODES),
  })
  .map(({ id, workspace, type, nodeId }) => {
    if (type.startsWith('task/')) return recorded(type, `task-${id}`, { taskId: id }, workspace);
    const more =
      type === 'run/RunStarted' ? { definition } : RUN_ENDS.includes(type.slice(4)) ? {} : { nodeId };
    return recorded(type, `run-${id}`, { runId: id, ...more }, workspace);
  });

describe('the projection of tasks', () => {
  it('has the same rows for any batches of the same events', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 60 }),
        fc.array(fc.integer({ min: 1, max: 20 }), { maxLength: 20 }),
        async (events, sizes) => {
          const oneByOne = await fold(
            events,
            events.map(() => 1),
          );
          expect(await fold(events, sizes)).toEqual(oneByOne);
          expect(await fold(events, [])).toEqual(oneByOne);
        },
      ),
      { numRuns: 40 },
    ));

  it('shows a task and the nodes of a run as their events say', async () => {
    const [taskId, runId] = [randomUUID(), randomUUID()];
    const task = (type: string, data = {}) => recorded(`task/${type}`, `task-${taskId}`, { taskId, ...data });
    const run = (type: string, data = {}) => recorded(`run/${type}`, `run-${runId}`, { runId, ...data });
    const found = await fold(
      [
        ...[
          task('TaskQueued', { agentId: null }),
          task('TaskAssigned', { agentId: 'main' }),
          task('TaskBegun'),
        ],
        ...[task('TaskRequeued', { reason: 'failed', message: 'no' }), run('RunStarted', { definition })],
        ...[run('TaskStarted', { nodeId: 'a' }), run('TaskAttemptFailed', { nodeId: 'a', message: 'once' })],
        ...[run('TaskStarted', { nodeId: 'a' }), run('TaskFailed', { nodeId: 'a', message: 'twice' })],
        ...[
          run('TaskStarted', { nodeId: 'b' }),
          run('TaskCompleted', { nodeId: 'b', output: '🎵'.repeat(70_000) }),
        ],
        run('RunFailed'),
      ],
      [],
    );
    const by = new Map((found as { id: string }[]).map((row) => [row.id, row]));
    expect(by.get(taskId)).toMatchObject({ state: 'queued', worker: null, agent_id: null, strikes: ['no'] });
    expect(by.get(`${runId}/a`)).toMatchObject({
      ...{ state: 'failed', worker: 'agent/main', strikes: ['once', 'twice'] },
      result: { status: 'failed', text: '', code: 'PROVIDER.UNREACHABLE' },
    });
    expect(by.get(`${runId}/b`)).toMatchObject({ state: 'completed', result: { text: '🎵'.repeat(65_536) } });
    expect(by.get(`${runId}/c`)).toMatchObject({ state: 'cancelled', title: 'calculator: c', result: null });
  });

  it('sends two statements for a batch of any number of events', async () => {
    const runs = Array.from({ length: 250 }, randomUUID);
    const events = ['RunStarted', 'RunCompleted'].flatMap((type) =>
      runs.map((runId) => recorded(`run/${type}`, `run-${runId}`, { runId })),
    );
    const query = jest.spyOn(client, 'query');
    await fold(events, []);
    const sent = query.mock.calls.filter(([statement]) => JSON.stringify(statement).includes('agent_tasks_'));
    query.mockRestore();
    expect(sent).toHaveLength(2);
  });

  it('reads the rows of a batch by their key under row-level security', async () => {
    const owner = new pg.Client({ connectionString: database.url });
    await owner.connect();
    await owner.query(`insert into agent_tasks (workspace, id, kind, title, state, priority, capabilities, epoch, strikes,
        queued_at, first_position)
      select 'default', i::text, 'task', '', 'queued', 5, '[]', 0, '[]', now(), i from generate_series(1, 2000) i;
      analyze agent_tasks`);
    await owner.end();
    const conditions = await indexConditions(database, 'agent', LOAD_TASKS_SQL);
    expect(conditions).toEqual([expect.stringMatching(/workspace = .*id >= .*id <= /)]);
  });
});
