import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { startSubject } from '@antiphon/messaging';
import { createTestDatabase } from '@antiphon/testing';
import {
  createAgentWorld,
  newAddress,
  submitTo,
  testConfig,
  until,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { echoTool } from '@antiphon/agent-features/testing/responders';
import { asksFor, says } from '@antiphon/agent-features/testing/test-model';
import type { Reply } from '@antiphon/agent-features/testing/test-model';

jest.setTimeout(30_000);

let world: AgentWorld;
let agent: TestProcess;
let defaults: AgentWorld['responders'];

beforeAll(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  agent = world.process({ config: testConfig({ tools: ['echo', 'once', 'gone'] }) });
  world.responders.tools = [echoTool(true), echoTool(false, 'once')];
  defaults = { ...world.responders };
});
beforeEach(() => {
  world.model.requests.length = 0;
  for (const asked of Object.values(world.responders.asked)) asked.length = 0;
  Object.assign(world.responders, defaults);
});
afterAll(() => world.close());

/** Calls tools in the first model call of a turn, and returns their results in the second. */
const uses =
  (...names: string[]): Reply =>
  async ({ messages }) => {
    const last = messages.at(-1);
    return last?.role === 'tool'
      ? says(last.results.map(({ content }) => content).join(' '))
      : asksFor(...names.map((name, index) => ({ name, input: { n: index } })));
  };
const turn = async () => {
  const { sessionId } = await submitTo(agent, { address: newAddress() });
  const events = await world.ended(sessionId);
  return { sessionId, events, types: events.map(({ type }) => type), text: events.at(-2)?.data['text'] };
};

describe('tool calls', () => {
  it('of one step run concurrently, and the model gets all results', async () => {
    let running = 0;
    let release: () => void = () => undefined;
    const both = new Promise<void>((resolve) => (release = resolve));
    world.responders.tool = async (request) => {
      if (++running === 2) release();
      await both;
      return defaults.tool(request);
    };
    world.model.reply = uses('echo', 'echo');
    const { events, types, text } = await turn();
    expect(text).toBe('{"n":0} {"n":1}');
    expect(types.slice(3, 6)).toEqual(['ModelCallCompleted', 'ToolCallRequested', 'ToolCallRequested']);
    expect(types.slice(-5)).toEqual([
      'ToolCallCompleted',
      'ToolCallCompleted',
      'ModelCallStarted',
      'ModelCallCompleted',
      'TurnCompleted',
    ]);
    const [first, second] = world.responders.asked.tool;
    expect(first?.idempotencyKey).not.toBe(second?.idempotencyKey);
    expect(events.find(({ type }) => type === 'ToolCallRequested')?.data).toMatchObject({
      idempotent: true,
      digest: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
  });

  // @shows U22
  it('of tools that the agent was not given are not made', async () => {
    world.model.reply = uses('rm_rf', 'echo');
    const { types, text } = await turn();
    expect(text).toBe('there is no tool "rm_rf" for this agent {"n":1}');
    expect(types.filter((type) => type === 'ToolCallFailed')).toHaveLength(1);
    expect(world.responders.asked.tool).toHaveLength(1);
  });

  it('with an error result continue the turn', async () => {
    world.responders.tool = async () => ({
      outcome: 'failed',
      code: 'TOOL.TRAP',
      message: 'unreachable executed',
      durationMs: 1,
    });
    world.model.reply = uses('echo');
    const { events, text } = await turn();
    expect(text).toBe('unreachable executed');
    expect(events.find(({ type }) => type === 'ToolCallFailed')?.data).toMatchObject({ code: 'TOOL.TRAP' });
  });

  it.each([
    ['once', 'ToolCallUnknown'],
    ['echo', 'ToolCallFailed'],
  ])('of %s that failed after they reached the outside end as %s', async (name, outcome) => {
    world.responders.tool = async () => ({
      outcome: 'failed',
      code: 'TOOL.TIMEOUT',
      message: 'timeout',
      mayHaveActed: true,
      durationMs: 1,
    });
    world.model.reply = uses(name);
    const { types } = await turn();
    expect(types.filter((type) => /^ToolCall(Completed|Failed|Unknown)$/.test(type))).toEqual([outcome]);
    expect(world.responders.asked.tool).toHaveLength(1);
  });

  // @shows U39
  it("end after the agent's maximum number of iterations", async () => {
    world.model.reply = async () => asksFor({ name: 'echo' });
    const { events, types } = await turn();
    expect(types.filter((type) => type === 'ModelCallCompleted')).toHaveLength(4);
    expect(types.filter((type) => type === 'ToolCallRequested')).toHaveLength(3);
    expect(events.at(-1)?.data).toMatchObject({ code: 'TURN.MAX_ITERATIONS' });
  });

  it('have results that fit into an event', async () => {
    world.responders.tool = async () => ({
      outcome: 'completed',
      content: '\u0001'.repeat(160_000),
      isError: false,
      moduleDigest: 'd',
      durationMs: 1,
    });
    world.model.reply = uses('echo');
    const { events } = await turn();
    const { content } = events.find(({ type }) => type === 'ToolCallCompleted')?.data as { content: string };
    expect(content).toMatch(/… \[clipped: 1\d+ of 160000 characters\]$/);
  });
});

describe('an unavailable sandbox', () => {
  it('is awaited, because no call was sent', async () => {
    world.model.reply = async (request, sink, call) => {
      if (call === 1) await world.responders.stopSandbox();
      return uses('once')(request, sink, call);
    };
    const { sessionId } = await submitTo(agent, { address: newAddress() });
    await until(async () => (await world.types(sessionId)).includes('ToolCallRequested'));
    await world.responders.startSandbox();
    expect((await world.ended(sessionId)).map(({ type }) => type)).toContain('ToolCallCompleted');
    expect(world.responders.asked.tool).toHaveLength(1);
  });

  it('repeats a pending idempotent call with the same key', async () => {
    world.responders.tool = (request) =>
      world.responders.asked.tool.length === 1 ? new Promise(() => undefined) : defaults.tool(request);
    world.model.reply = uses('echo');
    const { sessionId } = await submitTo(agent, { address: newAddress() });
    await until(() => world.responders.asked.tool.length === 1);
    await world.responders.stopSandbox();
    world.refused.length = 0;
    await until(() => world.refused.filter((code) => code === 'MESSAGING.NO_RESPONDERS').length >= 2);
    await world.responders.startSandbox();
    const events = await world.ended(sessionId, 1);
    expect(events.filter(({ type }) => /^ToolCall(Completed|Failed|Unknown)$/.test(type))).toMatchObject([
      { type: 'ToolCallCompleted' },
    ]);
    const [first, second] = world.responders.asked.tool;
    expect(second?.idempotencyKey).toBe(first?.idempotencyKey);
    expect(second?.callId).toBe(first?.callId);
  });

  it.each([
    ['sends a pending idempotent call again', 'echo', 2],
    ['leaves a pending call that is not idempotent with its process', 'once', 1],
  ])('%s as soon as a sandbox process starts', async (_title, tool, sent) => {
    let reply: () => void = () => undefined;
    const slow = new Promise<void>((resolve) => (reply = resolve));
    world.responders.tool = async (request) => {
      if (world.responders.asked.tool.length === 1) await slow;
      return defaults.tool(request);
    };
    world.model.reply = uses(tool);
    const { sessionId } = await submitTo(agent, { address: newAddress() });
    await until(() => world.responders.asked.tool.length === 1);
    world.nats.connection.publish(startSubject('sandbox'));
    if (sent === 1) {
      await world.nats.connection.flush();
      reply();
    }
    const types = (await world.ended(sessionId)).map(({ type }) => type);
    expect(types).toContain('ToolCallCompleted');
    expect(types).not.toContain('ToolCallDeferred');
    expect(world.responders.asked.tool).toHaveLength(sent);
    reply();
  });

  it('repeats a pending call that is not idempotent and has not begun', async () => {
    world.responders.beginsCalls = false;
    world.responders.tool = (request) =>
      world.responders.asked.tool.length === 1 ? new Promise(() => undefined) : defaults.tool(request);
    world.model.reply = uses('once');
    const { sessionId } = await submitTo(agent, { address: newAddress() });
    await until(() => world.responders.asked.tool.length === 1);
    await world.responders.stopSandbox();
    await until(async () => (await world.types(sessionId)).includes('ToolCallDeferred'));
    const [first] = world.responders.asked.tool;
    // The lost sandbox wakes up: it may not begin any more.
    expect(world.responders.permits(first?.attemptId ?? '')).toBe(false);
    await world.responders.startSandbox();
    const events = await world.ended(sessionId);
    expect(events.filter(({ type }) => /^ToolCall(Completed|Failed|Unknown)$/.test(type))).toMatchObject([
      { type: 'ToolCallCompleted' },
    ]);
    expect(events.find(({ type }) => type === 'ToolCallDeferred')?.data).toMatchObject({ reason: 'unsent' });
    const [, second] = world.responders.asked.tool;
    expect(second).toMatchObject({ callId: first?.callId, idempotencyKey: first?.idempotencyKey });
    expect(second?.attemptId).not.toBe(first?.attemptId);
  });

  it('leaves a pending call that is not idempotent with an unknown outcome', async () => {
    world.responders.tool = () => new Promise(() => undefined);
    world.model.reply = uses('once');
    const { sessionId } = await submitTo(agent, { address: newAddress() });
    await until(() => world.responders.asked.tool.length === 1);
    await world.responders.stopSandbox();
    const events = await world.ended(sessionId);
    await world.responders.startSandbox();
    const unknown = events.find(({ type }) => type === 'ToolCallUnknown');
    expect(unknown?.data['cause']).toMatchObject({ kind: 'tool_outcome_unknown' });
    expect(world.responders.asked.tool).toHaveLength(1);
    expect(world.model.requests[1]?.messages.at(-1)).toMatchObject({
      role: 'tool',
      results: [{ isError: true }],
    });
  });
});
