import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createTestDatabase } from '@antiphon/testing';
import {
  createAgentWorld,
  newAddress,
  submitTo,
  testConfig,
  until,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld } from '@antiphon/agent-features/testing/agent-world';
import { echoTool } from '@antiphon/agent-features/testing/responders';
import { asksFor, says } from '@antiphon/agent-features/testing/test-model';

describe('The policy of an agent', () => {
  let world: AgentWorld;
  beforeAll(async () => {
    world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
    world.responders.tools = [echoTool(true), { ...echoTool(true, 'fetch'), grants: ['http:example.com'] }];
  }, 60_000);
  afterAll(() => world.close(), 30_000);

  const policy = [
    { tool: 'echo', argument: '/path', matches: 'secrets/*', decision: 'deny' as const },
    { tool: '*', capability: 'http:*', decision: 'ask' as const },
  ];
  const start = () => world.process({ config: testConfig({ tools: ['echo', 'fetch'], policy }) });
  const ends = async (sessionId: string) =>
    (await world.ended(sessionId)).map(({ type, data }) => ({ type, data }));

  it('denies a call by its arguments, as one failed outcome with the rule, and allows the others', async () => {
    const before = world.responders.asked.tool.length;
    world.model.reply = async ({ messages }) =>
      messages.at(-1)?.role === 'tool'
        ? says(JSON.stringify(messages.at(-1)))
        : asksFor(
            { name: 'echo', input: { path: 'secrets/key' } },
            { name: 'echo', input: { path: 'docs/a' } },
          );
    const { sessionId } = await submitTo(start(), { address: newAddress('main') });
    const events = await ends(sessionId);
    const failed = events.filter(({ type }) => type === 'ToolCallFailed');
    expect(failed.map(({ data }) => [data['code'], data['cause']])).toEqual([
      ['TOOL.DENIED', { kind: 'tool_denied_by_rule', name: 'echo', rule: 1 }],
    ]);
    expect(events.filter(({ type }) => type === 'ToolCallCompleted')).toHaveLength(1);
    expect(world.responders.asked.tool.slice(before).map(({ input }) => input)).toEqual([{ path: 'docs/a' }]);
    const text = events.find(({ type, data }) => type === 'ModelCallCompleted' && data['text'] !== '')?.data[
      'text'
    ];
    expect(text).toContain("denied by rule 1 of the agent's policy");
  });

  it('asks for a call by the capability of its tool', async () => {
    world.model.reply = async () => asksFor({ name: 'fetch', input: {} });
    const { sessionId } = await submitTo(start(), { address: newAddress('main') });
    const requested = await until(async () =>
      (await world.events(sessionId)).find(({ type }) => type === 'ApprovalRequested'),
    );
    expect(requested.data).toMatchObject({
      name: 'fetch',
      answerBy: 'operator',
      grants: ['http:example.com'],
    });
  });
});
