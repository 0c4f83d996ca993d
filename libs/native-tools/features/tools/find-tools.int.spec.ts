import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { ModelRequest } from '@antiphon/providers-domain';
import { createTestDatabase } from '@antiphon/testing';
import {
  createAgentWorld,
  newAddress,
  submitTo,
  testConfig,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld } from '@antiphon/agent-features/testing/agent-world';
import { asksFor, says } from '@antiphon/agent-features/testing/test-model';
import { estimateTools } from '@antiphon/conversation-domain';
import { MANY_TOOLS } from '../testing/many-tools.js';

const namesOf = ({ tools }: ModelRequest): string[] => tools.map(({ name }) => name);
const resultOf = ({ messages }: ModelRequest): string => {
  const last = messages.at(-1);
  return last?.role === 'tool' ? (last.results[0]?.content ?? '') : '';
};
const find = (query: string) => asksFor({ name: 'find_tools', input: { query } });

describe('An agent with 500 tools', () => {
  let world: AgentWorld;
  const tools = ['read', '*'];
  beforeAll(async () => {
    world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
    world.responders.tools = [...MANY_TOOLS];
  }, 60_000);
  afterAll(() => world.close(), 30_000);

  it('finds one and calls it, with at most 2,000 tokens of schemas in each prompt', async () => {
    const agent = world.process({ config: testConfig({ tools, maxIterations: 10 }) });
    const answers = [
      find('weather forecast for Oslo tomorrow'),
      asksFor({ name: 'weather_get_forecast', input: { query: 'Oslo' } }),
      find('send an SMS to a phone'),
      find('block my stolen credit card'),
      find('search scientific papers about transformers'),
      says('done'),
    ];
    const from = world.model.requests.length;
    world.model.reply = async () => answers[world.model.requests.length - from - 1] ?? says('too late');
    const address = newAddress('main');
    const { sessionId } = await submitTo(agent, { address });
    const events = await world.ended(sessionId);
    const prompts = world.model.requests.slice(from);

    expect(prompts).toHaveLength(6);
    expect(namesOf(prompts[0] as ModelRequest)).toEqual(['read', 'find_tools']);
    expect(prompts[0]?.tools[1]?.description).toContain('500 tools, of airtable (10)');
    expect(namesOf(prompts[1] as ModelRequest)).toContain('weather_get_forecast');
    expect(resultOf(prompts[1] as ModelRequest)).toContain('weather_get_forecast: Returns temperature');
    expect(resultOf(prompts[2] as ModelRequest)).toContain('Oslo');
    expect(namesOf(prompts[5] as ModelRequest)).toContain('arxiv_search_papers');
    for (const prompt of prompts) expect(estimateTools(prompt.tools)).toBeLessThanOrEqual(2_000);
    // Tools are added at the end: the ones before them stay, byte for byte.
    const [, second, third, fourth] = prompts.map((prompt) =>
      prompt.tools.map((tool) => JSON.stringify(tool)),
    );
    expect(third).toEqual(second);
    expect(fourth?.slice(0, second?.length)).toEqual(second);
    const outcomes = events.filter(({ type }) => type.startsWith('ToolCallC'));
    expect(outcomes.filter(({ type }) => type === 'ToolCallCompleted')).toHaveLength(4 + 1);

    // The next turn, of another process that folds the log, has the same tools.
    const later = world.process({ config: testConfig({ tools, maxIterations: 10 }) });
    world.model.reply = async () => says('again');
    await agent.runtime.stop();
    await submitTo(later, { address }, 'and now?');
    await world.ended(sessionId, 2);
    expect(namesOf(world.model.requests.at(-1) as ModelRequest)).toEqual(namesOf(prompts[5] as ModelRequest));
  });

  it('has all tools in the prompt where its names stand for 30 at most', async () => {
    const agent = world.process({ config: testConfig({ tools: ['github_*', 'weather_*', 'read'] }) });
    world.model.reply = async () => says('hello');
    const { sessionId } = await submitTo(agent, { address: newAddress('main') });
    await world.ended(sessionId);
    const names = namesOf(world.model.requests.at(-1) as ModelRequest);
    expect(names).toHaveLength(21);
    expect(names.slice(0, 2)).toEqual(['github_create_issue', 'github_create_pull_request']);
    expect(names.at(-1)).toBe('read');
  });

  it('may call no tool outside of its names, and finds none of them', async () => {
    const agent = world.process({ config: testConfig({ tools: ['g*', 's*', 'd*', 't*'] }) });
    const from = world.model.requests.length;
    const answers = [
      find('lock the garden gate'),
      asksFor({ name: 'home_lock_gate', input: {} }),
      says('no'),
    ];
    world.model.reply = async () => answers[world.model.requests.length - from - 1] ?? says('too late');
    const { sessionId } = await submitTo(agent, { address: newAddress('main') });
    const events = await world.ended(sessionId);
    const [, second] = world.model.requests.slice(from);
    expect(resultOf(second as ModelRequest)).not.toContain('home_lock_gate');
    expect(events.find(({ type }) => type === 'ToolCallFailed')?.data).toMatchObject({
      code: 'TOOL.UNKNOWN',
    });
  });
});
