import { textOf } from '@antiphon/contracts/causes';
import type { Cause } from '@antiphon/contracts/causes';
import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { findCall } from '@antiphon/contracts/sandbox';
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

jest.setTimeout(30_000);
/** Bound for the detection, ms: far below a call's deadline of 65 s, twice the usual 4.5 s. */
const SOON_MS = 12_000;

let world: AgentWorld;
let agent: TestProcess;
let defaults: AgentWorld['responders'];
let asked: number;

beforeAll(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  agent = world.process({ config: testConfig({ tools: ['echo', 'once'] }) });
  world.responders.tools = [echoTool(true), echoTool(false, 'once')];
  world.model.reply = async ({ messages }) => {
    const last = messages.at(-1);
    return last?.role === 'tool'
      ? says(last.results.map(({ content }) => content).join(' '))
      : asksFor({ name: last?.role === 'user' ? last.text : '', input: { n: 1 } });
  };
  defaults = { ...world.responders };
});
beforeEach(() => {
  world.responders.asked.tool.length = 0;
  Object.assign(world.responders, defaults);
  asked = 0;
});
afterAll(() => world.close());

const OUTCOME = /^ToolCall(Completed|Failed|Unknown)$/;

/** Runs a turn with one call of this tool. Returns the call's outcome. */
const turn = async (tool: string) => {
  const { sessionId } = await submitTo(agent, { address: newAddress() }, tool);
  const end = await until(
    async () => (await world.events(sessionId)).find(({ type }) => OUTCOME.test(type)),
    SOON_MS,
  );
  const events = await world.ended(sessionId);
  return { type: end.type, data: end.data, types: events.map(({ type }) => type) };
};
/** Loses the first request with its sandbox process. Another process has never seen the call. */
const losesTheFirst = (): void => {
  world.responders.tool = (request) =>
    world.responders.asked.tool.length === 1 ? new Promise(() => undefined) : defaults.tool(request);
  world.responders.find = async () => {
    asked++;
    return null;
  };
};

describe('a tool call whose response is lost', () => {
  it('is not repeated: its outcome is found in the sandbox', async () => {
    losesTheFirst();
    world.responders.find = async () => ({
      state: 'ended',
      reply: { outcome: 'completed', content: 'found', isError: false, moduleDigest: 'd', durationMs: 1 },
    });
    const { type, data } = await turn('once');
    expect([type, data['content']]).toEqual(['ToolCallCompleted', 'found']);
    expect(world.responders.asked.tool).toHaveLength(1);
  });

  it('is soon unknown if no process knows it and it is not idempotent', async () => {
    losesTheFirst();
    const { type, data } = await turn('once');
    expect(type).toBe('ToolCallUnknown');
    expect(textOf(data['cause'] as unknown as Cause)).toMatch(
      /no sandbox process knows the call; .* it was not run again/,
    );
    expect(asked).toBeGreaterThanOrEqual(2);
    expect(world.responders.asked.tool).toHaveLength(1);
  });

  it('is soon repeated with its key if no process knows it and it is idempotent', async () => {
    losesTheFirst();
    const { type, types } = await turn('echo');
    expect(type).toBe('ToolCallCompleted');
    expect(types).toContain('ToolCallDeferred');
    const [first, second] = world.responders.asked.tool;
    expect(second).toMatchObject({ callId: first?.callId, idempotencyKey: first?.idempotencyKey });
  });

  it('is awaited while one of several processes has it', async () => {
    losesTheFirst();
    let answer: () => void = () => undefined;
    world.responders.tool = async (request) => {
      await new Promise<void>((resolve) => (answer = resolve));
      return defaults.tool(request);
    };
    let having = 0;
    const other = world.nats.connection.subscribe(findCall.subject, {
      callback: (_error, message) => {
        if (++having === 3) answer();
        else message.respond(JSON.stringify({ ok: true, result: { state: 'running' } }));
      },
    });
    const { type } = await turn('once');
    other.unsubscribe();
    expect(type).toBe('ToolCallCompleted');
    expect(asked).toBe(3);
  });

  it('is awaited while no process can deny that it has it', async () => {
    losesTheFirst();
    let answer: () => void = () => undefined;
    world.responders.tool = async (request) => {
      await new Promise<void>((resolve) => (answer = resolve));
      return defaults.tool(request);
    };
    world.responders.healthy = () => new Promise(() => undefined);
    const ending = turn('once');
    await until(() => asked >= 2, SOON_MS);
    answer();
    expect((await ending).type).toBe('ToolCallCompleted');
  });
});
