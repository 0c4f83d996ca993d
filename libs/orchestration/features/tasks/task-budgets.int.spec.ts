import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { ModelAnswer, ModelRequest } from '@antiphon/providers-domain';
import { createTestDatabase } from '@antiphon/testing';
import { until } from '@antiphon/agent-features/testing/agent-world';
import { configWith, createTasksWorld } from '@antiphon/agent-features/testing/tasks-world';
import type { TasksProcess, TasksWorld } from '@antiphon/agent-features/testing/tasks-world';
import { asksFor, says } from '@antiphon/agent-features/testing/test-model';

jest.setTimeout(60_000);

const config = (() => {
  const base = configWith({ lead: ['lead'], helper: ['help'], other: [] });
  const tools = ['ask_agent', 'delegate_task'];
  return {
    ...base,
    agents: base.agents.map((agent) => ({ ...agent, systemPrompt: `you are ${agent.id}`, tools })),
  };
})();
const budgetOf = (tokens: number) => ({ tokens, microUsd: null });
const limitOf = (taskId: string, tokens: number) => ({ taskId, limitTokens: tokens, limitMicroUsd: null });

let world: TasksWorld;
let agent: TasksProcess;
let grant: TasksWorld['agents']['responders']['reserve'];
beforeAll(async () => {
  world = await createTasksWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  agent = world.process(config);
  grant = world.agents.responders.reserve;
});
afterAll(() => world?.close());

/** Plays the agents: the lead's first answer is a call of a tool. */
const play = (first: ModelAnswer | null): void => {
  let calls = 0;
  world.agents.model.reply = async ({ system }: ModelRequest) =>
    first && system.includes('you are lead') && ++calls === 1 ? first : says('done');
};
beforeEach(() => {
  world.agents.responders.asked.reserve.length = 0;
  world.agents.responders.reserve = grant;
  play(null);
});
const reserved = () => world.agents.responders.asked.reserve;
const idOfChild = async (parentTaskId: string): Promise<string> =>
  until(async () => {
    for (const [stream, events] of await world.history())
      for (const event of events)
        if (event.type === 'TaskQueued' && event.data.parentTaskId === parentTaskId)
          return stream.slice('task-'.length);
    return null;
  });

describe('the budget of a task', () => {
  it('admits the calls of its turn, and no call of a task without a budget', async () => {
    const id = await world.send(agent, { agent: 'lead', budget: budgetOf(5_000) });
    expect((await world.ended(agent, id)).state).toBe('completed');
    const free = await world.send(agent, { agent: 'lead' });
    await world.ended(agent, free);
    expect(reserved().map(({ tasks }) => tasks)).toEqual([[limitOf(id, 5_000)], undefined]);
  });

  it('admits the calls of agents that the turn asks', async () => {
    play(asksFor({ name: 'ask_agent', input: { agent: 'helper', question: 'how?' } }));
    const id = await world.send(agent, { agent: 'lead', budget: budgetOf(5_000) });
    await world.ended(agent, id);
    expect(reserved().map(({ agentId }) => agentId)).toEqual(['lead', 'helper', 'lead']);
    for (const { tasks } of reserved()) expect(tasks).toEqual([limitOf(id, 5_000)]);
  });

  it('admits the calls of tasks that the turn delegates, next to their own', async () => {
    const input = { prompt: 'part', capabilities: ['help'], budget: { tokens: 900 } };
    play(asksFor({ name: 'delegate_task', input }));
    const id = await world.send(agent, { agent: 'lead', budget: budgetOf(5_000) });
    const child = await idOfChild(id);
    expect((await world.ended(agent, child)).parentTaskId).toBe(id);
    const call = await until(() => reserved().find(({ agentId }) => agentId === 'helper'));
    expect(call.tasks).toEqual([limitOf(child, 900), limitOf(id, 5_000)]);
  });

  it('fails the task at its first refusal, with the name of the limit', async () => {
    const message = 'token budget exceeded (task: 4900/5000)';
    world.agents.responders.reserve = async () => ({
      ...{ granted: false, scope: 'task', unit: 'tokens', used: 4_900, limit: 5_000, message },
    });
    const id = await world.send(agent, { agent: 'lead', budget: budgetOf(5_000) });
    expect(await world.ended(agent, id)).toMatchObject({
      ...{ state: 'failed', epoch: 1, strikes: [message] },
      result: { code: 'BUDGET.EXCEEDED' },
    });
  });
});
