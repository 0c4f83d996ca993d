import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { sessionStream } from '@antiphon/contracts/agent';
import { createPool } from '@antiphon/database';
import { createPostgresEventStore } from '@antiphon/event-store';
import { newEvent } from '@antiphon/testing';
import { connectClient, type SocketClient } from '@antiphon/testing/client';
import type { TestStack } from '@antiphon/testing/stack';
import { startMockModel, type MockModel, type MockScript } from '@antiphon/testing/providers';
import { letTimePass } from '@antiphon/testing/waits';
import pg from 'pg';
import { runCli, waitForValue, startStackWith, twoVendorConfig } from './stack-under-test.js';

const SESSIONS = 12;
const ROUNDS = Number(process.env['ANTIPHON_REBUILD_ROUNDS'] ?? 6);

const script: MockScript = ({ user, toolResults }) => {
  if (toolResults.length > 0) return { text: [`it is ${toolResults[0]}`] };
  if (user.startsWith('add'))
    return { tools: [{ id: 'call_1', name: 'calculator', input: { expression: '19 + 23' } }] };
  return { text: ['noted: ', user] };
};
const MESSAGES = ['my name is Ada', 'add', 'I live in Oslo', 'my cat is Turing', 'I live in Rome', 'hello'];

interface Compared {
  readonly name: string;
  readonly position: number;
  readonly events: number;
  readonly rows: number;
  readonly differing: number;
  readonly first: readonly unknown[];
}

const PROJECTIONS = [
  ...[
    'agent-sessions',
    'agent-runs',
    'agent-tasks',
    'agent-agents',
    'agent-channels',
    'memory-facts',
    'memory-log-rates',
    'budget-ledger',
    'budget-usage',
  ],
];

describe('projections under live load', () => {
  let mock: MockModel;
  let stack: TestStack;
  let client: SocketClient;
  let loading: Promise<void[]>;
  let turns = 0;
  const load = { on: true };

  const runSession = async (n: number): Promise<void> => {
    for (let nth = n; load.on; nth++) {
      const params = { channel: 'test', account: 'load', peer: `p${n}`, agent: n % 2 ? 'claude' : 'gpt' };
      if (nth % 17 === 0) await client.call('chat.send', { ...params, content: '/new' });
      const content = MESSAGES[nth % MESSAGES.length] ?? '';
      await client.stream('chat.send', { ...params, content }).done();
      turns++;
    }
  };
  const chain = { name: 'load', nodes: [{ id: 'only', agent: 'claude', prompt: 'one step' }] };
  const runs = async (): Promise<void> => {
    while (load.on) {
      const headers = { 'content-type': 'application/json' };
      const body = JSON.stringify({ workflow: chain });
      await fetch(`${stack.gatewayUrl}/api/v1/runs`, { method: 'POST', headers, body });
      await letTimePass(200);
    }
  };
  const rebuild = async (...args: string[]): Promise<readonly Compared[]> => {
    const run = await runCli(stack, ['projections', 'rebuild', '--all', '--json', ...args]);
    if (run.code !== 0) throw new Error(`${run.stdout}${run.stderr}`);
    return run.stdout
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Compared);
  };

  beforeAll(async () => {
    mock = await startMockModel(script);
    stack = await startStackWith(twoVendorConfig(mock.url));
    client = await connectClient(stack.wsUrl);
    loading = Promise.all([...Array.from({ length: SESSIONS }, (_, n) => runSession(n)), runs()]);
  }, 120_000);
  afterAll(async () => {
    load.on = false;
    await loading.catch(() => undefined);
    await client?.close();
    await stack?.stop();
    await mock?.close();
  }, 120_000);

  it('equal the log in every row, before and after a rebuild', async () => {
    const positions: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const compared = await rebuild('--compare');
      expect(compared.map(({ name, differing, first }) => [name, differing, first])).toEqual(
        PROJECTIONS.map((name) => [name, 0, []]),
      );
      positions.push(compared[0]?.position ?? 0);
      await rebuild();
    }
    process.stdout.write(`turns ${turns}, positions ${positions.join(' ')}\n`);
    expect(positions.at(-1)).toBeGreaterThan((positions[0] ?? 0) + 80 * ROUNDS);
  }, 600_000);

  it('park only the stream of a poison event, which the CLI lists, and replays after a fix', async () => {
    const pool = createPool({ url: stack.databaseUrl, applicationName: 'spec' });
    const store = createPostgresEventStore(pool);
    const sessionId = randomUUID();
    const streamId = sessionStream(sessionId);
    const turnId = randomUUID();
    const at = '2026-11-22T10:00:00.000Z';
    const poison = newEvent({ turnId, content: 7, requestedAt: at });
    await store.append({
      workspace: 'default',
      streams: [
        {
          streamId,
          expectedVersion: 0,
          events: [
            {
              ...newEvent({ sessionId, sessionKey: 'poison', agentId: 'claude', startedAt: at }),
              type: 'SessionStarted',
            },
            { ...poison, type: 'TurnRequested' },
            { ...newEvent({ turnId, reason: 'no more' }), type: 'TurnFailed' },
            // Metering's consumer rejects this event.
            { ...newEvent({ turnId, usage: 'much' }), type: 'ModelCallAborted' },
          ],
        },
      ],
    });
    const list = async () =>
      JSON.parse((await runCli(stack, ['dlq', 'list', '--json'])).stdout) as {
        streams: Record<string, unknown>[];
        messages: Record<string, unknown>[];
      };
    const before = turns;
    const parked = await waitForValue(
      'the park of the stream',
      async () => {
        const found = await list();
        return found.streams[0]?.['retryAt'] === null && found.messages.length > 0 ? found : undefined;
      },
      90_000,
    );
    expect(parked.streams).toEqual([
      expect.objectContaining({ projection: 'memory-facts', streamId, eventId: poison.eventId, tries: 5 }),
    ]);
    expect(parked.messages).toEqual([
      expect.objectContaining({ consumer: 'metering-settle-calls', code: 'MESSAGING.INVALID' }),
    ]);
    expect(turns).toBeGreaterThan(before + 10);
    const failed = await runCli(stack, ['dlq', 'replay']);
    expect([failed.code, failed.stdout]).toEqual([1, expect.stringContaining('2 stay parked')]);
    await pool.query(`begin; set local session_replication_role = replica;
      update events set data = jsonb_set(data, '{content}', '"my name is Eve"') where event_id = '${poison.eventId}';
      commit`);
    const replayed = await runCli(stack, ['dlq', 'replay', '--projection', 'memory-facts']);
    expect([replayed.code, replayed.stdout]).toEqual([0, expect.stringContaining('1 streams')]);
    expect((await list()).streams).toEqual([]);
    expect((await rebuild('--compare')).map(({ differing }) => differing)).toEqual(PROJECTIONS.map(() => 0));
    await store.close();
    await pool.end();
  }, 300_000);

  it('are repaired by a rebuild when rows are lost', async () => {
    const database = new pg.Client({ connectionString: stack.databaseUrl });
    await database.connect();
    await database.query(`delete from memory_facts where abs(hashtext(fact_id::text)) % 2 = 0;
      update agent_sessions set turns = turns + 1; delete from agent_runs where status = 'completed'`);
    await database.end();
    const spoiled = await runCli(stack, ['projections', 'rebuild', '--all', '--compare']);
    expect(spoiled.code).toBe(1);
    expect(spoiled.stdout).toMatch(/agent_sessions .*: turns\n/);
    await rebuild();
    expect((await rebuild('--compare')).map(({ differing }) => differing)).toEqual(PROJECTIONS.map(() => 0));
  }, 600_000);
});
