import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { listAgentTools, type ToolView } from '@antiphon/contracts/agent';
import { createTestDatabase } from '@antiphon/testing';
import {
  WORKSPACE,
  createAgentWorld,
  newAddress,
  submitTo,
  testConfig,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { asksFor, says } from '@antiphon/agent-features/testing/test-model';
import { ListTools } from './list-tools.handler.js';

jest.setTimeout(60_000);

const approval = {
  ...{ tool: 'echo', ask: 'always' as const, expiresAfterMs: 600_000, escalateAfterMs: null },
  ...{ escalateTo: 'admin' as const, answerBy: 'operator' as const },
};
const limit = { tool: 'echo', timeoutMs: 1_000, maxAttempts: null, maxBackoffMs: null };

const config = (() => {
  const base = testConfig();
  const [main] = base.agents;
  if (!main) throw new Error('no agent');
  const guarded = { ...main, id: 'guarded', name: 'Guarded', approvals: [approval], toolLimits: [limit] };
  return {
    ...base,
    agents: [{ ...main, tools: ['echo', 'read', 'gone'] }, guarded],
  };
})();

let world: AgentWorld;
let agent: TestProcess;
beforeAll(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  const [echo] = world.responders.tools;
  if (!echo) throw new Error('no tool');
  world.responders.tools = [
    { ...echo, grants: ['http:api.example.com'], timeoutMs: 5_000, memoryMb: 16 },
    { ...echo, name: 'forecast', source: 'remote' },
  ];
  agent = world.process({ config });
});
afterAll(() => world.close());

const list = (query: object = {}) =>
  agent.get(ListTools).handle(listAgentTools.request.parse({ workspace: WORKSPACE, ...query }));
const toolOf = async (name: string, query: object = {}): Promise<ToolView | undefined> =>
  (await list(query)).tools.find((tool) => tool.name === name) as ToolView | undefined;

/** Has the agent call a tool once, and waits for the end of the turn. */
const callOnce = async (name: string): Promise<void> => {
  world.model.reply = async ({ messages }) =>
    messages.some(({ role }) => role === 'tool') ? says('done') : asksFor({ name });
  const { sessionId } = await submitTo(agent, { address: newAddress('main') });
  await world.ended(sessionId);
};

describe('the catalogue of tools', () => {
  it('has native tools and those of plug-ins, with their limits, agents and approval rules', async () => {
    const { tools, hasPlugins } = await list();
    expect(hasPlugins).toBe(true);
    expect(tools.map(({ name, source }) => `${name} ${source}`)).toEqual(
      expect.arrayContaining(['read native', 'send_message native', 'echo plugin', 'forecast remote']),
    );
    expect(await toolOf('echo')).toMatchObject({
      ...{ moduleDigest: expect.any(String), capabilities: ['http:api.example.com'] },
      ...{ hosts: ['api.example.com'], timeoutMs: 5_000, memoryMb: 16, maxOutputBytes: 1_048_576 },
      agentCount: 2,
      // Both are recorded at the same time.
      agents: expect.arrayContaining([
        expect.objectContaining({ id: 'main', approval: null }),
        {
          ...{ id: 'guarded', name: 'Guarded', timeoutMs: 1_000 },
          approval: { ask: 'always', answerBy: 'operator', expiresAfterS: 600 },
        },
      ]),
    });
    expect(await toolOf('read')).toMatchObject({
      ...{ source: 'native', moduleDigest: null, memoryMb: null, capabilities: [], agentCount: 1 },
      inputSchema: { required: ['path'] },
    });
  });

  it('names tools that agents should have and that do not exist', async () => {
    expect((await list()).unknown).toEqual([{ name: 'gone', agents: ['main'] }]);
  });

  it('counts the calls and failures of a day, now and as of a position, in its own workspace', async () => {
    expect(await toolOf('echo')).toMatchObject({ calls: { count: 0, failures: 0, lastAt: null } });
    await callOnce('echo');
    const afterFirst = await world.store.headPosition();
    world.responders.tool = async () => ({
      ...{ outcome: 'completed', content: 'no', isError: true, moduleDigest: 'digest', durationMs: 1 },
    });
    await callOnce('echo');
    world.responders.tool = async () => ({
      ...{ outcome: 'failed', code: 'TOOL.TRAP', message: 'it ended', durationMs: 1 },
    });
    await callOnce('echo');
    const last = expect.stringMatching(/^\d{4}-/) as unknown as string;
    expect((await toolOf('echo'))?.calls).toEqual({ count: 3, failures: 2, lastAt: last });
    expect((await toolOf('read'))?.calls?.count).toBe(0);
    const then = await list({ at: afterFirst });
    expect(then.position).toBe(afterFirst);
    expect((await toolOf('echo', { at: afterFirst }))?.calls).toMatchObject({ count: 1, failures: 0 });
    expect((await toolOf('echo', { workspace: 'elsewhere' }))?.calls?.count).toBe(0);
    // Before the agents were recorded there was none.
    expect(await toolOf('echo', { at: 1 })).toMatchObject({ calls: { count: 0 } });
  });

  it('counts by the index of the types, and no event of another day', async () => {
    const { rows } = await world.pool.query<{ 'QUERY PLAN': string }>(
      `explain select 1 from events where workspace = 'default'
        and type in ('ToolCallRequested', 'ToolCallCompleted', 'ToolCallFailed', 'ToolCallUnknown')
        and recorded_at > now() - interval '1 day' order by recorded_at desc limit 20000`,
    );
    expect(rows.map((row) => row['QUERY PLAN']).join('\n')).toContain('events_tool_calls_idx');
  });

  it('has the native tools while the sandbox does not respond, and says so', async () => {
    const tools = world.responders.tools;
    world.responders.tools = null as never;
    const { tools: shown, hasPlugins, unknown } = await list();
    world.responders.tools = tools;
    expect([hasPlugins, unknown]).toEqual([false, []]);
    expect(shown.every(({ source }) => source === 'native')).toBe(true);
    expect(shown.length).toBeGreaterThan(5);
  });
});
