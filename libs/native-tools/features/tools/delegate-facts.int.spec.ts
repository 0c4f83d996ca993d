import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createTestDatabase } from '@antiphon/testing';
import { createAgentWorld, testConfig } from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { call, causesInTwoWordings, runCalls } from '@antiphon/agent-features/testing/tool-calls';

let world: AgentWorld;
let agent: TestProcess;
beforeAll(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  const tools = ['send_message', 'spawn_agent', 'delegate_task'];
  const config = testConfig({ tools, maxIterations: 40, contacts: ['main'] });
  const [main] = config.agents;
  if (!main) throw new Error('no agent');
  const { contacts: _, ...other } = main;
  agent = world.process({
    config: { ...config, agents: [main, { ...other, id: 'other', tools: [...tools, 'write'] }] },
  });
}, 60_000);
afterAll(() => world.close(), 30_000);

const SPAWN = { name: 'one', role: 'a role', instructions: 'do it' };

describe('The facts of refused messages, agents and tasks', () => {
  it('are causes, the same after each text was reworded', async () => {
    const refused: readonly (readonly [string, Parameters<typeof call>])[] = [
      ['contact_not_allowed', ['send_message', { agent: 'other', text: 'hi' }]],
      ['contact_not_allowed', ['send_message', { topic: 'news', text: 'hi' }]],
      ['contact_not_allowed', ['send_message', { everyone: true, text: 'hi' }]],
      ['agent_missing', ['send_message', { agent: 'missing', text: 'hi' }]],
      ['spawner_without', ['spawn_agent', { ...SPAWN, tools: ['write'] }]],
      ['agents_not_own', ['delegate_task', { title: 't', prompt: 'p', agent: 'other' }]],
    ];
    const calls = refused.map(([, of]) => call(...of));
    const [causes, again] = await causesInTwoWordings(() => runCalls(world, agent, ...calls));
    expect(causes).toEqual(refused.map(([kind]) => expect.objectContaining({ kind })));
    expect(again).toEqual(causes);
  });
});
