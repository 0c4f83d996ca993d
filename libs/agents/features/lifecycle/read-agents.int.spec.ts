import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '@antiphon/testing';
import { ALL_WORKSPACES, createPool } from '@antiphon/database';
import { createPostgresEventStore } from '@antiphon/event-store';
import { projectAgents } from './agent-agents.projection.js';
import {
  createAgentWorld,
  newAddress,
  submitTo,
  until,
  WORKSPACE,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld } from '@antiphon/agent-features/testing/agent-world';
import { hangs } from '@antiphon/agent-features/testing/test-model';

jest.setTimeout(30_000);

let world: AgentWorld;
let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  world = await createAgentWorld(database, process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
});
afterAll(() => world.close());

describe('the list of agents', () => {
  it('contains the configured agents and whether they are working', async () => {
    const { runtime, ...process } = world.process();
    const state = async () => (await runtime.listAgents(WORKSPACE)).agents[0]?.state;
    expect((await runtime.listAgents(WORKSPACE)).agents).toMatchObject([
      { id: 'main', provider: 'first', model: 'm', tools: ['echo'], state: 'idle', isDefault: true },
    ]);
    world.model.reply = hangs();
    const { sessionId } = await submitTo({ runtime, ...process }, { address: newAddress() });
    await until(async () => (await state()) === 'working');
    await runtime.cancelTurn({ workspace: WORKSPACE, sessionId, caller: 'spec' });
    await until(async () => (await state()) === 'idle');
  });

  it('says when the newest turn of an agent began and ended, without a heartbeat', async () => {
    const { runtime, ...process } = world.process();
    const turnAt = async () => (await runtime.listAgents(WORKSPACE)).agents[0]?.lastTurnAt;
    const before = await turnAt();
    world.model.reply = hangs();
    const { sessionId } = await submitTo({ runtime, ...process }, { address: newAddress() });
    const began = await until(async () => {
      const at = await turnAt();
      return at !== before && at;
    });
    await runtime.cancelTurn({ workspace: WORKSPACE, sessionId, caller: 'spec' });
    const events = await world.ended(sessionId);
    const timeOf = (type: string) => events.find((event) => event.type === type)?.recordedAt;
    expect(began).toBe(timeOf('TurnRequested'));
    await until(async () => (await turnAt()) === timeOf('TurnCancelled'));
  });
});

describe('the rows of agents', () => {
  it('are the same for every division of the log into batches', async () => {
    const pool = createPool({ url: database.url, applicationName: 'spec', workspace: ALL_WORKSPACES });
    const events = await createPostgresEventStore(pool).readLog({ after: 0, limit: 1_000 });
    expect(events.some(({ type }) => type === 'TurnRequested')).toBe(true);
    const client = await pool.connect();
    const fold = async (size: number): Promise<unknown> => {
      const read = async (table: string) =>
        (await client.query<{ row: string }>(`select t::text as row from ${table} t order by 1`)).rows;
      const tables = ['agent_agents', 'agent_activity', 'agent_state_changes'];
      await client.query('begin');
      for (const table of tables) await client.query(`delete from ${table}`);
      for (let from = 0; from < events.length; from += size)
        await projectAgents(client, events.slice(from, from + size));
      const rows = [];
      for (const table of tables) rows.push(await read(table));
      await client.query('rollback');
      return rows;
    };
    const whole = await fold(events.length);
    expect(await fold(1)).toEqual(whole);
    expect(await fold(3)).toEqual(whole);
    client.release();
    await pool.end();
  });
});
