import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { agentStream } from '@antiphon/contracts/agent';
import type { ModelAnswer, ModelRequest } from '@antiphon/providers-domain';
import { createTestDatabase } from '@antiphon/testing';
import { agentUuidOf } from '@antiphon/agent-log/derived-ids';
import { readBinding } from '@antiphon/conversation-features/sessions/session-keys';
import {
  WORKSPACE,
  createAgentWorld,
  newAddress,
  submitTo,
  testConfig,
  until,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { asksFor, says } from '@antiphon/agent-features/testing/test-model';

const AGENTS = ['a', 'b', 'c'];
const config = (() => {
  const base = testConfig();
  const [main] = base.agents;
  if (!main) throw new Error('no agent');
  const tools = ['send_message', 'ask_agent', 'hand_over', 'spawn_agent', 'echo'];
  return {
    ...base,
    agents: AGENTS.map((id) => ({ ...main, id, name: id, systemPrompt: `you are ${id}`, tools })),
  };
})();

type Script = Readonly<
  Record<string, (request: ModelRequest, call: number) => Promise<ModelAnswer> | ModelAnswer>
>;

describe('Native tools', () => {
  let world: AgentWorld;
  let agent: TestProcess;
  let calls: Record<string, number> = {};
  const play = (script: Script): void => {
    calls = {};
    world.model.reply = async (request) => {
      const who = AGENTS.find((id) => request.system.includes(`you are ${id}`)) ?? '';
      calls[who] = (calls[who] ?? 0) + 1;
      return (script[who] ?? (() => says(`answer of ${who}`)))(request, calls[who]);
    };
  };
  const begin = (agentId = 'a', content = 'hello') =>
    submitTo(agent, { address: newAddress(agentId) }, content);
  const lastResult = (request: ModelRequest): string => {
    const last = request.messages.at(-1);
    return last?.role === 'tool' ? (last.results[0]?.content ?? '') : '';
  };
  const toolOf = (request: ModelRequest): string => JSON.stringify(request.messages.at(-1));

  beforeAll(async () => {
    world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  }, 60_000);
  beforeEach(() => {
    agent = world.process({ config });
  });
  afterAll(() => world.close(), 30_000);

  it('are offered to the model with a schema', async () => {
    play({});
    const { sessionId } = await begin();
    await world.ended(sessionId);
    const tools = world.model.requests.at(-1)?.tools.map(({ name }) => name);
    expect(tools).toEqual(['send_message', 'ask_agent', 'hand_over', 'spawn_agent', 'echo']);
    expect(world.model.requests.at(-1)?.tools[1]?.inputSchema).toMatchObject({
      type: 'object',
      required: ['agent', 'question'],
    });
  });

  it('ask another agent, whose answer is the result of the call', async () => {
    play({
      a: (request, call) =>
        call === 1
          ? asksFor({ name: 'ask_agent', input: { agent: 'b', question: 'what is 6 × 7?' } })
          : says(`b said ${toolOf(request)}`),
      b: () => says('42'),
    });
    const { sessionId } = await begin();
    const events = await world.ended(sessionId);
    expect(events.find(({ type }) => type === 'ToolCallCompleted')?.data).toMatchObject({ content: '42' });
    expect(world.model.requests.some(({ messages }) => JSON.stringify(messages).includes('6 × 7'))).toBe(
      true,
    );
  });

  it('are refused after the configured number of hops, with the name of the limit', async () => {
    agent = world.process({ config: { ...config, messages: { maxHops: 1 } } });
    const refused: string[] = [];
    play({
      a: (_, call) =>
        call === 1 ? asksFor({ name: 'ask_agent', input: { agent: 'b', question: 'q' } }) : says('done'),
      b: (request, call) => {
        if (call === 1) return asksFor({ name: 'ask_agent', input: { agent: 'c', question: 'q' } });
        refused.push(lastResult(request));
        return says('alone');
      },
    });
    const { sessionId } = await begin();
    expect((await world.ended(sessionId)).at(-1)?.type).toBe('TurnCompleted');
    expect(refused).toEqual([expect.stringContaining('limit hops')]);
    expect(calls['c']).toBeUndefined();
  });

  it('hand the turn over, and forward the answer word for word without a further model call', async () => {
    play({
      a: () => asksFor({ name: 'hand_over', input: { agent: 'b', note: 'be brief' } }),
      b: () => says('the answer\nof b'),
    });
    const { sessionId } = await begin('a', 'where is my invoice?');
    const events = await world.ended(sessionId);
    expect(calls).toEqual({ a: 1, b: 1 });
    expect(events.slice(-2).map(({ type, data }) => [type, data['text']])).toEqual([
      ['AnswerForwarded', 'the answer\nof b'],
      ['TurnCompleted', undefined],
    ]);
    expect(JSON.stringify(world.model.requests.at(-1)?.messages)).toContain('where is my invoice?');
  });

  // @shows agents-A7
  it('return an answer once that promises a hand-over without the call', async () => {
    play({
      a: (request, call) => {
        if (call === 1) return says("I'll hand you over to b.");
        expect(JSON.stringify(request.messages.at(-1))).toContain('you did not call the tool hand_over');
        return asksFor({ name: 'hand_over', input: { agent: 'b' } });
      },
      b: () => says("I'll transfer you to c."),
    });
    const { sessionId } = await begin();
    const types = (await world.ended(sessionId)).map(({ type }) => type);
    expect(types.filter((type) => type === 'AnswerReturned')).toHaveLength(1);
    expect(types.slice(-2)).toEqual(['AnswerForwarded', 'TurnCompleted']);
    // The agent b repeats its promise: its second answer stands.
    expect(calls).toEqual({ a: 2, b: 2 });
  });

  // @shows agents-A7
  it.each([
    ['A↔B', { a: 'b', b: 'a' }, 2],
    ['A→B→C→A', { a: 'b', b: 'c', c: 'a' }, 3],
    ['self', { a: 'a' }, 1],
  ])('stop the circle %s by rule, without a model call afterwards', async (_name, to, length) => {
    const target = to as Record<string, string>;
    const pass = (id: string) => () => asksFor({ name: 'hand_over', input: { agent: target[id] ?? '' } });
    play(Object.fromEntries(AGENTS.map((id) => [id, pass(id)])));
    const before = (await blocked('a')).length;
    const { sessionId } = await begin('a', `circle ${_name}`);
    const events = await world.ended(sessionId);
    // Each turn of the circle has the cause itself, and no text of it.
    const data = { code: 'AGENT.HANDOVER_LOOP', cause: { kind: 'request_circle' } };
    expect(events.at(-1)).toMatchObject({ type: 'TurnFailed', data });
    const made = Object.values(calls).reduce((sum, count) => sum + count, 0);
    expect(made).toBeLessThanOrEqual(length + 1);
    const after = await blocked('a');
    expect(after).toHaveLength(before + 1);
    expect(after.at(-1)?.data['chain']).toHaveLength(Math.min(made, length + 1) + 1);
  });
  const blocked = async (agentId: string) =>
    (await world.store.readStream(WORKSPACE, agentStream(agentUuidOf(WORKSPACE, agentId)))).filter(
      ({ type }) => type === 'AgentBlocked',
    );

  it('send a message once, although its driver dies after the send', async () => {
    play({
      a: (request) =>
        lastResult(request) === ''
          ? asksFor({ name: 'send_message', input: { agent: 'c', text: 'from a' } })
          : says('sent'),
    });
    const died = Promise.withResolvers<void>();
    const first: TestProcess = world.process({
      config,
      failpoint: async (name) => {
        if (name !== 'agent.tool.answered') return;
        first.kill();
        died.resolve();
        await new Promise(() => undefined);
      },
    });
    const { sessionId } = await submitTo(first, { address: newAddress('a') });
    await died.promise;
    await world.handleExit(first);
    await agent.runtime.takeOver();
    expect((await world.ended(sessionId)).at(-1)?.type).toBe('TurnCompleted');
    const next = await begin('c');
    const events = await world.ended(next.sessionId);
    const received = events.filter(({ type }) => type === 'MessagesReceived');
    expect(received.map(({ data }) => data['messages'])).toMatchObject([
      [{ from: 'agent/a', content: { text: 'from a' } }],
    ]);
  });

  it('are joined by the next driver after kill -9 of the process that asked', async () => {
    const asked = Promise.withResolvers<void>();
    const answered = Promise.withResolvers<void>();
    play({
      a: (_request, call) =>
        call === 1 ? asksFor({ name: 'ask_agent', input: { agent: 'b', question: 'slow?' } }) : says('done'),
      b: async () => {
        asked.resolve();
        await answered.promise;
        return says('slow answer');
      },
    });
    const { sessionId } = await begin();
    await asked.promise;
    agent.kill();
    await world.handleExit(agent);
    answered.resolve();
    const second = world.process({ config });
    await second.runtime.takeOver();
    const events = await world.ended(sessionId);
    expect(events.at(-1)?.type).toBe('TurnCompleted');
    expect(
      events.filter(({ type }) => type === 'ToolCallCompleted').map(({ data }) => data['content']),
    ).toEqual(['slow answer']);
  });

  it('cancel the asked turn with the turn of the asker', async () => {
    const asked = Promise.withResolvers<void>();
    play({
      a: () => asksFor({ name: 'ask_agent', input: { agent: 'b', question: 'for ever?' } }),
      b: (request) => {
        asked.resolve();
        return new Promise((_resolve, reject) =>
          request.signal.addEventListener('abort', () => reject(request.signal.reason as Error)),
        );
      },
    });
    const { sessionId, turnId } = await begin();
    await asked.promise;
    const call = (await world.events(sessionId)).find(({ type }) => type === 'ToolCallRequested');
    await agent.runtime.cancelTurn({ workspace: WORKSPACE, sessionId, turnId, caller: 'spec' });
    await world.ended(sessionId);
    const key = `b:agent:a:${String(call?.data['callId'])}`;
    const { sessionId: other } = await readBinding(world.store, WORKSPACE, key);
    await until(async () => (await world.types(other ?? '')).includes('TurnCancelled'));
  });

  it('spawn an agent below the caller, once, which answers then', async () => {
    const spawn = { name: 'Helper', instructions: 'you are helper', tools: ['echo'] };
    play({
      a: (request, call) => {
        if (call === 1) return asksFor({ name: 'spawn_agent', input: spawn });
        if (call > 2) return says('done');
        const { agentId } = JSON.parse(lastResult(request)) as { agentId: string };
        return asksFor({ name: 'ask_agent', input: { agent: agentId, question: 'who are you?' } });
      },
    });
    const { sessionId } = await begin();
    const events = await world.ended(sessionId);
    const results = events
      .filter(({ type }) => type === 'ToolCallCompleted')
      .map(({ data }) => data['content']);
    const { agentId } = JSON.parse(String(results[0])) as { agentId: string };
    const child = await agent.runtime.services.agents.load(WORKSPACE, agentId);
    expect(child).toMatchObject({ parentId: 'a', rootId: 'a', depth: 1, base: 'a', tools: ['echo'] });
    expect(results[1]).toBe('answer of ');
  });

  it('fail as a tool does for an unknown agent and for invalid arguments', async () => {
    play({
      a: (_request, call) =>
        call === 1
          ? asksFor({ name: 'ask_agent', input: { agent: 'zz', question: 'q' } }, { name: 'send_message' })
          : says('ok'),
    });
    const { sessionId } = await begin();
    const events = await world.ended(sessionId);
    expect(
      events
        .filter(({ type }) => type === 'ToolCallFailed')
        .map(({ data }) => data['code'])
        .sort(),
    ).toEqual(['AGENT.NOT_FOUND', 'TOOL.INVALID_INPUT']);
  });
});
