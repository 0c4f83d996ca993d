import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createPool } from '@antiphon/database';
import { createPostgresEventStore, type EventStore, type PastReads } from '@antiphon/event-store';
import { createMemoryEventStore } from '@antiphon/event-store/testing';
import type { JsonObject } from '@antiphon/kernel';
import { silentLogger } from '@antiphon/observability';
import { createTestDatabase, newEvent, until, type TestDatabase } from '@antiphon/testing';
import type pg from 'pg';
import { AgentRows } from '../lifecycle/agent-rows.js';
import { createPastReads } from '@antiphon/agent-features/projections';
import { AGENT_FOLDERS, AgentFolders, createFoldersOnStart } from './agent-folders.js';
import { AgentMetricsSampler, SAMPLE_MS, type ProcessUse } from './agent-metrics.js';
import { listAgentMetrics, type SamplesStored } from '@antiphon/contracts/agent';
import { acrossWorkspaces } from '@antiphon/database';
import { ListAgentMetrics } from './list-agent-metrics.handler.js';
import { ReadAgentMetrics } from './read-agent-metrics.handler.js';

const START = Date.parse('2026-11-22T10:00:00.000Z');

let database: TestDatabase;
let pool: pg.Pool;
let store: EventStore;
let past: PastReads;
let home: string;
let folders: AgentFolders;
let now = START;
let use: ProcessUse;

const sampler = (process: string, announce?: (stored: SamplesStored) => void) =>
  new AgentMetricsSampler({
    ...(announce && { announce }),
    ...{ pool, folders, process, logger: silentLogger, metricsDays: 30 },
    clock: { now: () => now },
    readUse: () => use,
  });
const readPage = (agentId: string, workspace = 'default', at?: number, step = 30) => {
  const agents = { load: () => Promise.resolve({ id: agentId } as never) };
  const handler = new ReadAgentMetrics(agents as never, new AgentRows(pool), past);
  return handler.handle({ workspace, agentId, limit: 10, step, at });
};
const read = async (agentId: string, workspace?: string) => (await readPage(agentId, workspace)).samples;

beforeAll(async () => {
  database = await createTestDatabase();
  pool = createPool({ url: database.urlFor('agent'), applicationName: 'spec', max: 2 });
  store = createPostgresEventStore(pool);
  past = createPastReads(pool);
  home = await mkdtemp(join(tmpdir(), 'antiphon-agents-'));
  folders = new AgentFolders(home, silentLogger);
  use = { cpuMs: 0, heapBytes: 0, readBytes: 0, writtenBytes: 0 };
}, 60_000);
afterAll(async () => {
  await past?.close();
  await pool?.end();
  await database?.drop();
  await rm(home, { recursive: true });
});

/** Agents of two workspaces in the rows of the projection. */
const INSERT_AGENTS = `insert into agent_agents (workspace, agent_id, record, status, root_id, first_position, last_position)
  select w, id, '{}', status, id, n, n from (values ('listed', 'one', 'ready', 1), ('listed', 'two', 'paused', 2),
    ('listed', 'gone', 'terminated', 3), ('elsewhere', 'one', 'ready', 4)) as a (w, id, status, n)`;
const listMetrics = (query: object) =>
  new ListAgentMetrics(past, { now: () => now }).handle(
    listAgentMetrics.request.parse({ workspace: 'listed', ...query }),
  );

describe('the folder of an agent', () => {
  it('is created with mode 700 when the agent becomes ready, once, and stays', async () => {
    const store = createFoldersOnStart(createMemoryEventStore(), folders);
    const start = (agentId: string) =>
      store.append({
        workspace: 'default',
        streams: [
          {
            streamId: `agent-${agentId}`,
            expectedVersion: 'any',
            events: [newEvent({ agentId }, { type: 'AgentReady' })],
          },
        ],
      });
    await start('ada');
    const folder = folders.pathOf('default', 'ada');
    await until(() =>
      stat(join(folder, 'logs')).then(
        () => true,
        () => false,
      ),
    );
    for (const name of AGENT_FOLDERS) expect((await stat(join(folder, name))).mode & 0o777).toBe(0o700);
    expect((await stat(folder)).mode & 0o777).toBe(0o700);
    await writeFile(join(folder, 'projects', 'note.md'), 'kept');
    await folders.create('default', 'ada');
    expect(await folders.measure('default', 'ada')).toBe(4);
  });

  it.each(['../x', '..', '.', 'a/b', '', '/etc', 'a\u0000'])('is refused for the id %j', (id) =>
    expect(() => folders.pathOf('default', id)).toThrow(/cannot be the name of a folder/),
  );
});

describe('samples of what agents use', () => {
  it('divide the use of the process by the work, and add up over processes', async () => {
    const [one, two] = [sampler('p1'), sampler('p2')];
    await mkdir(join(folders.pathOf('default', 'worker'), 'projects'), { recursive: true });
    await writeFile(join(folders.pathOf('default', 'worker'), 'projects', 'a'), 'x'.repeat(100));
    const usage = { inputTokens: 10, outputTokens: 5, estimated: false };
    one.record('default', 'worker', [
      { type: 'ModelCallStarted', data: {} },
      { type: 'ModelCallCompleted', data: { usage } },
      { type: 'ToolCallRequested', data: {} },
    ]);
    one.record('default', 'other', [{ type: 'TurnCompleted', data: {} }]);
    two.record('default', 'worker', [{ type: 'TurnCompleted', data: {} }]);
    now = START + SAMPLE_MS + 123;
    use = { cpuMs: 400, heapBytes: 4_000, readBytes: 800, writtenBytes: 80 };
    for (const process of [one, two]) await process.sample();
    const at = new Date(START + SAMPLE_MS).toISOString();
    expect(await read('worker')).toEqual([
      {
        ...{ at, cpuMs: 300 + 400, memoryBytes: 3_000 + 4_000, diskBytes: 100 },
        ...{ diskReadBytes: 600 + 800, diskWrittenBytes: 60 + 80 },
        ...{ turns: 1, modelCalls: 1, toolCalls: 1, inputTokens: 10, outputTokens: 5 },
      },
    ]);
    expect(await read('other')).toMatchObject([{ cpuMs: 100, turns: 1, diskBytes: 0 }]);
    expect(await read('worker', 'other')).toEqual([]);
    // Nothing worked and no folder changed since.
    now += SAMPLE_MS;
    await one.sample();
    expect(await read('worker')).toHaveLength(1);
    await writeFile(join(folders.pathOf('default', 'worker'), 'projects', 'b'), 'x'.repeat(50));
    now += SAMPLE_MS;
    await one.sample();
    expect(await read('worker')).toMatchObject([{ diskBytes: 150, cpuMs: 0, turns: 0 }, { diskBytes: 100 }]);
  });

  it('are read as of a position once they had ended by then', async () => {
    const taken = sampler('p4');
    const sampleAt = async (time: number): Promise<void> => {
      taken.record('default', 'timed', [{ type: 'TurnCompleted', data: {} }]);
      now = time;
      await taken.sample();
    };
    await sampleAt(Date.now() - 10 * SAMPLE_MS);
    const golden = new URL('../../../contracts/events/golden/agent/AgentSpawned.v1.json', import.meta.url);
    const { data } = JSON.parse(await readFile(golden, 'utf8')) as { data: JsonObject };
    const spawned = newEvent({ ...data, agentId: 'timed' }, { type: 'AgentSpawned' });
    const streams = [{ streamId: 'agent-timed', expectedVersion: 'any' as const, events: [spawned] }];
    await store.append({ workspace: 'default', streams });
    const position = await store.headPosition();
    await sampleAt(Date.now());
    await sampleAt(Date.now() + 10 * SAMPLE_MS);
    expect(await read('timed')).toHaveLength(3);
    const then = await readPage('timed', 'default', position);
    expect([then.samples.length, then.position, then.head]).toEqual([1, position, position]);
    await expect(readPage('timed', 'default', position - 1)).rejects.toMatchObject({
      code: 'AGENT.NOT_FOUND',
    });
  });

  it('are listed for all agents of a workspace in one read, the newest of each over its processes', async () => {
    await acrossWorkspaces(pool).query(INSERT_AGENTS);
    const told: SamplesStored[] = [];
    const [one, two] = [sampler('l1', (stored) => told.push(stored)), sampler('l2')];
    const usage = { inputTokens: 10, outputTokens: 5, estimated: false };
    const work = async (time: number, agents: readonly string[]): Promise<string> => {
      for (const process of [one, two])
        for (const id of agents)
          process.record('listed', id, [{ type: 'ModelCallCompleted', data: { usage } }]);
      one.record('elsewhere', 'one', [{ type: 'TurnCompleted', data: {} }]);
      now = time;
      for (const process of [one, two]) await process.sample();
      return new Date(time).toISOString();
    };
    const first = await work(START + 60 * SAMPLE_MS, ['one', 'two', 'gone']);
    const second = await work(START + 61 * SAMPLE_MS, ['one']);
    expect(
      told
        .map(({ workspace }) => workspace)
        .sort()
        .slice(0, 2),
    ).toEqual(['elsewhere', 'elsewhere']);
    expect(told).toContainEqual({ workspace: 'listed', at: second });
    const page = await listMetrics({});
    expect(page).toMatchObject({ day: second.slice(0, 10), nextCursor: null });
    expect(page.agents).toMatchObject([
      { agentId: 'one', latest: { at: second, inputTokens: 20, outputTokens: 10 }, recent: [] },
      { agentId: 'two', latest: { at: first, inputTokens: 20 }, recent: [] },
    ]);
    const charted = await listMetrics({ agentIds: ['one', 'gone', 'unknown'], minutes: 30 });
    expect(charted.agents.map(({ agentId, recent }) => [agentId, recent.map(({ at }) => at)])).toEqual([
      ['one', [first, second]],
      ['gone', [first]],
    ]);
    expect((await listMetrics({ since: second })).agents.map(({ agentId }) => agentId)).toEqual(['one']);
    // Both samples are in one hour, and 30 s each.
    const hours = (await readPage('one', 'listed', undefined, 3_600)).samples;
    const memory = (await read('one', 'listed')).map(({ memoryBytes }) => memoryBytes);
    expect(hours).toMatchObject([{ inputTokens: 40, outputTokens: 20, memoryBytes: Math.max(...memory) }]);
    expect((await read('one', 'listed')).map(({ inputTokens }) => inputTokens)).toEqual([20, 20]);
    const { agents, nextCursor } = await listMetrics({ limit: 1 });
    expect(agents.map(({ agentId }) => agentId)).toEqual(['one']);
    const next = await listMetrics({ limit: 1, cursor: nextCursor });
    expect([next.agents.map(({ agentId }) => agentId), next.nextCursor]).toEqual([['two'], null]);
  });

  it('are deleted after the days that the configuration names', async () => {
    const deleting = sampler('p3');
    now = START + 30 * 24 * 3_600_000;
    expect(await deleting.deleteOld()).toBe(0);
    now += 2 * SAMPLE_MS;
    expect(await deleting.deleteOld()).toBeGreaterThan(0);
    now += SAMPLE_MS * 10;
    await deleting.deleteOld();
    expect(await read('worker')).toEqual([]);
  });
});
