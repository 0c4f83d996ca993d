import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { connectClient, type SocketClient } from '@antiphon/testing/client';
import type { TestStack } from '@antiphon/testing/stack';
import { startMockModel, type MockModel, type MockScript } from '@antiphon/testing/providers';
import pg from 'pg';
import { antiphon, startWith, twoVendors } from './stack-under-test.js';

const SESSIONS = 12;
const ROUNDS = 6;

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

describe('projections under live load', () => {
  let mock: MockModel;
  let stack: TestStack;
  let client: SocketClient;
  let loading: Promise<void[]>;
  let turns = 0;
  const load = { on: true };

  const talk = async (n: number): Promise<void> => {
    for (let said = n; load.on; said++) {
      const params = { channel: 'test', account: 'load', peer: `p${n}`, agent: n % 2 ? 'claude' : 'gpt' };
      const content = said % 17 === 0 ? '/new' : (MESSAGES[said % MESSAGES.length] ?? '');
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
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  };
  const rebuild = async (...args: string[]): Promise<readonly Compared[]> => {
    const run = await antiphon(stack, ['projections', 'rebuild', '--all', '--json', ...args]);
    if (run.code !== 0) throw new Error(`${run.stdout}${run.stderr}`);
    return run.stdout
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Compared);
  };

  beforeAll(async () => {
    mock = await startMockModel(script);
    stack = await startWith(twoVendors(mock.url));
    client = await connectClient(stack.wsUrl);
    loading = Promise.all([...Array.from({ length: SESSIONS }, (_, n) => talk(n)), runs()]);
  }, 120_000);
  afterAll(async () => {
    load.on = false;
    await loading.catch(() => undefined);
    await client?.close();
    await stack?.stop();
    await mock?.close();
  }, 120_000);

  it('differ from the log in no row, before and after they are rebuilt', async () => {
    const positions: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const compared = await rebuild('--compare');
      expect(compared.map(({ name, differing, first }) => [name, differing, first])).toEqual(
        ['agent-sessions', 'agent-runs', 'memory-facts', 'budget-ledger'].map((name) => [name, 0, []]),
      );
      positions.push(compared[0]?.position ?? 0);
      await rebuild();
    }
    process.stdout.write(`turns ${turns}, positions ${positions.join(' ')}\n`);
    expect(positions.at(-1)).toBeGreaterThan((positions[0] ?? 0) + 500);
  }, 600_000);

  it('are made whole again when their rows are lost', async () => {
    const database = new pg.Client({ connectionString: stack.databaseUrl });
    await database.connect();
    await database.query(`delete from memory_facts where abs(hashtext(fact_id::text)) % 2 = 0;
      update agent_sessions set turns = turns + 1; delete from agent_runs where status = 'completed'`);
    await database.end();
    const spoiled = await antiphon(stack, ['projections', 'rebuild', '--all', '--compare']);
    expect(spoiled.code).toBe(1);
    expect(spoiled.stdout).toMatch(/agent_sessions .*: turns\n/);
    await rebuild();
    expect((await rebuild('--compare')).map(({ differing }) => differing)).toEqual([0, 0, 0, 0]);
  }, 600_000);
});
