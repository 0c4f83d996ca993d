import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { connectClient, type SocketClient } from '@antiphon/testing/client';
import { startMockModel, type MockModel } from '@antiphon/testing/providers';
import type { TestStack } from '@antiphon/testing/stack';
import { readEvents, runCli, startQuickStack, twoVendorConfig, waitForValue } from './stack-under-test.js';

jest.setTimeout(180_000);

let mock: MockModel;
let stack: TestStack;
let client: SocketClient;

beforeAll(async () => {
  mock = await startMockModel(() => ({ text: ['ok'], usage: { inputTokens: 4_000, outputTokens: 900 } }));
  stack = await startQuickStack(twoVendorConfig(mock.url));
  client = await connectClient(stack.wsUrl);
});
afterAll(async () => {
  await client?.close();
  await stack?.stop();
  await mock?.close();
});

const call = async (method: string, path: string, body?: object) => {
  const response = await fetch(`${stack.gatewayUrl}${path}`, {
    method,
    ...(body ? { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) } : {}),
  });
  return { status: response.status, json: (await response.json()) as Record<string, unknown> };
};
const send = (agent: string, content: string) =>
  client.stream('chat.send', { channel: 'test', account: 'tree', peer: 'p', agent, content }).done();

interface Cost {
  readonly agentId: string;
  readonly settledTokens: number;
  readonly settledMicroUsd: number;
}
const usageOf = async (query: string) =>
  (await call('GET', `/api/v1/usage${query}`)).json as unknown as { agents: Cost[]; total: Cost };

describe('a tree of agents with a budget of 10,000 tokens', () => {
  it('is spawned with a child whose own budget is larger', async () => {
    const lead = { id: 'lead', name: 'Lead', base: 'claude', budget: { tokens: 10_000 } };
    const helper = {
      id: 'helper',
      name: 'Helper',
      base: 'claude',
      parent: 'lead',
      budget: { tokens: 90_000 },
    };
    for (const body of [lead, helper])
      expect(await call('POST', '/api/v1/agents', body)).toMatchObject({
        status: 201,
        json: { id: body.id },
      });
    const limits = await readEvents(stack, { type: 'BudgetLimitSet' });
    expect(limits.map(({ data }) => [data['scopeKey'], data['limitTokens']]).sort()).toEqual([
      ['agent/helper', 90_000],
      ['agent/lead', 10_000],
    ]);
  });

  it('refuses a call of the child, and one of its parent, before the provider is called', async () => {
    for (const content of ['one', 'two'])
      expect((await send('helper', content)).at(-1)?.data).toMatchObject({ status: 'completed' });
    const calls = mock.calls.length;
    for (const agent of ['helper', 'lead']) {
      const frames = await send(agent, 'three');
      expect(frames.find(({ event }) => event === 'error')?.data).toMatchObject({
        code: 'BUDGET.EXCEEDED',
        message: 'token budget exceeded (agent: 9800/10000)',
      });
    }
    expect(mock.calls).toHaveLength(calls);
    // Agents outside of the tree continue.
    expect((await send('claude', 'hi')).at(-1)?.data).toMatchObject({ status: 'completed' });
  });

  it('has one bill, and the cost of all agents is what the ledger says', async () => {
    const tree = await usageOf('?tree=lead');
    expect(tree.agents.map(({ agentId, settledTokens }) => [agentId, settledTokens])).toEqual([
      ['helper', 9_800],
    ]);
    const all = await waitForValue('all calls to be settled', async () => {
      const usage = await usageOf('');
      return usage.total.settledTokens === 14_700 ? usage : undefined;
    });
    const sum = (field: 'settledTokens' | 'settledMicroUsd') =>
      all.agents.reduce((total, agent) => total + agent[field], 0);
    const { json } = await call('GET', '/api/v1/budgets?agent=lead');
    const scopes = json['scopes'] as Record<string, unknown>[];
    expect(scopes.map(({ kind }) => kind)).toEqual(['agent', 'day', 'month']);
    expect(scopes[0]).toMatchObject({ key: 'agent/lead', limitTokens: 10_000, settledTokens: 9_800 });
    expect(scopes[2]).toMatchObject({
      settledTokens: sum('settledTokens'),
      settledMicroUsd: sum('settledMicroUsd'),
    });
  });

  it('fails a task at its own budget before the provider is called', async () => {
    const calls = mock.calls.length;
    const task = { prompt: 'summarise', agent: 'claude', budget: { tokens: 100 } };
    const { json } = await call('POST', '/api/v1/tasks', task);
    const ended = await waitForValue('the task to end', async () => {
      const read = (await call('GET', `/api/v1/tasks/${String(json['id'])}`)).json;
      return read['endedAt'] === null ? undefined : read;
    });
    expect(ended).toMatchObject({
      ...{ state: 'failed', epoch: 1, strikes: ['token budget exceeded (task: 0/100)'] },
      result: { code: 'BUDGET.EXCEEDED' },
    });
    expect(mock.calls).toHaveLength(calls);
  });

  it('passes the audit after its end', async () => {
    expect(await call('DELETE', '/api/v1/agents/lead')).toMatchObject({ json: { state: 'terminated' } });
    const { code, stdout } = await runCli(stack, ['audit', '--json']);
    const report = JSON.parse(stdout) as { first: unknown; checks: { name: string; checked: number }[] };
    expect(report.first).toBeNull();
    expect(code).not.toBe(1);
    const counts = new Map(report.checks.map(({ name, checked }) => [name, checked]));
    expect(counts.get('tree-budgets-are-nested')).toBe(4);
    expect(counts.get('agents-follow-their-lifecycle')).toBeGreaterThanOrEqual(3);
  });
});
