import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { transient } from '@antiphon/kernel';
import { createTestDatabase } from '@antiphon/testing';
import {
  WORKSPACE,
  newAddress,
  submitTo,
  testConfig,
  until,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { echoTool } from '@antiphon/agent-features/testing/responders';
import { createRunsWorld } from '@antiphon/agent-features/testing/runs-world';
import type { RunsProcess, RunsWorld } from '@antiphon/agent-features/testing/runs-world';
import { asksFor, says } from '@antiphon/agent-features/testing/test-model';
import { letTimePass } from '@antiphon/testing/waits';

jest.setTimeout(60_000);

const QUICK = { maxAttempts: 2, backoffMs: 10, maxBackoffMs: 10, onTimeout: true };

let world: RunsWorld;
let agents: AgentWorld;
let tool: 'echo' | 'once' | 'quick';
let answer: AgentWorld['responders']['tool'];
beforeAll(async () => {
  world = await createRunsWorld(
    await createTestDatabase(),
    process.env['ANTIPHON_TEST_NATS_URL'] ?? '',
    process.env['ANTIPHON_TEST_TEMPORAL_ADDRESS'] ?? '',
  );
  ({ agents } = world);
  answer = agents.responders.tool;
  agents.responders.tools = [echoTool(true), echoTool(false, 'once'), echoTool(true, 'quick', QUICK)];
});
beforeEach(() => {
  tool = 'echo';
  agents.responders.tool = answer;
  agents.responders.asked.tool.length = 0;
  agents.model.reply = async ({ messages }) => {
    const last = messages.at(-1);
    return last?.role === 'tool'
      ? says(last.results.map(({ content }) => content).join(' '))
      : asksFor({ name: tool, input: { canary: 'CANARY' } });
  };
});
afterAll(() => world?.close());

const lose = async (): Promise<never> => {
  throw transient('SANDBOX.LOST', 'the sandbox stopped during the call');
};
const failing = (code: string) => async () =>
  ({ outcome: 'failed', code, message: code, durationMs: 1 }) as const;
/** Sets the outcomes of the next attempts. The tool succeeds from then on. */
const ends = (...tries: AgentWorld['responders']['tool'][]): void => {
  agents.responders.tool = (request) => (tries.shift() ?? answer)(request);
};
const keysAsked = (): string[] => agents.responders.asked.tool.map(({ idempotencyKey }) => idempotencyKey);

const turnOf = async (process: TestProcess) => {
  const { sessionId } = await submitTo(process, { address: newAddress() });
  const events = await agents.ended(sessionId);
  const about = events.filter(({ type }) => type.startsWith('ToolCall'));
  const callId = String(about[0]?.data['callId']);
  return {
    sessionId,
    callId,
    types: about.map(({ type }) => type),
    about,
    text: events.at(-2)?.data['text'],
  };
};

describe('a tool call whose first attempt failed', () => {
  let agent: RunsProcess;
  beforeAll(async () => {
    agent = world.process();
    await until(() => agent.worker.isPolling(), 30_000);
  });
  afterAll(() => agent.stop());

  it('is retried by a Temporal workflow with the same key if its tool is idempotent', async () => {
    ends(lose, failing('TOOL.UNAVAILABLE'));
    const { types, text, callId } = await turnOf(agent);
    expect(types).toEqual(['ToolCallRequested', 'ToolCallDeferred', 'ToolCallDeferred', 'ToolCallCompleted']);
    expect(text).toBe('{"canary":"CANARY"}');
    expect(new Set(keysAsked())).toEqual(new Set([callId]));
    const handle = world.temporal.workflow.getHandle(`tool/${callId}`);
    await handle.result();
    const { type, typedSearchAttributes } = await handle.describe();
    expect(type).toBe('toolRetry');
    expect(JSON.stringify(typedSearchAttributes.getAll())).toContain('AntiphonSession');
    const history = await handle.fetchHistory();
    const payloads = JSON.stringify(history, (_, value: unknown) =>
      value instanceof Uint8Array ? Buffer.from(value).toString() : value,
    );
    expect(payloads).toContain(callId);
    expect(payloads).not.toContain('CANARY');
  });

  it('is claimed again for each attempt if its tool was certainly not reached', async () => {
    tool = 'once';
    ends(failing('TOOL.UNAVAILABLE'));
    const { types, about } = await turnOf(agent);
    expect(types).toEqual([
      'ToolCallRequested',
      'ToolCallClaimed',
      'ToolCallDeferred',
      'ToolCallClaimed',
      'ToolCallCompleted',
    ]);
    expect(about.flatMap(({ data }) => data['tryNumber'] ?? [])).toEqual([1, 2]);
  });

  it('is not retried if its tool is not idempotent and may have been reached', async () => {
    tool = 'once';
    ends(lose);
    expect((await turnOf(agent)).types).toEqual(['ToolCallRequested', 'ToolCallClaimed', 'ToolCallUnknown']);
    expect(keysAsked()).toHaveLength(1);
  });

  it('is attempted at most as often as its tool declares', async () => {
    tool = 'quick';
    ends(lose, lose);
    const { types, about } = await turnOf(agent);
    expect(types).toEqual(['ToolCallRequested', 'ToolCallDeferred', 'ToolCallUnknown']);
    expect(about[0]?.data['retry']).toEqual(QUICK);
    expect(keysAsked()).toHaveLength(2);
  });

  it('is retried after a timeout only if its tool allows it', async () => {
    tool = 'quick';
    ends(failing('TOOL.TIMEOUT'), failing('TOOL.TIMEOUT'));
    expect((await turnOf(agent)).types).toEqual(['ToolCallRequested', 'ToolCallDeferred', 'ToolCallFailed']);
    expect(keysAsked()).toHaveLength(2);
  });
});

describe("an agent whose limits are below a tool's policy", () => {
  afterEach(() => agents.stopAll());

  it('makes its calls with fewer attempts and a shorter timeout', async () => {
    tool = 'quick';
    ends(lose);
    const limit = { tool: 'quick', timeoutMs: 700, maxAttempts: 1, maxBackoffMs: null };
    const process = agents.process({ config: testConfig({ tools: ['quick'], toolLimits: [limit] }) });
    const { types, about } = await turnOf(process);
    expect(types).toEqual(['ToolCallRequested', 'ToolCallUnknown']);
    expect(about[0]?.data).toMatchObject({ retry: { ...QUICK, maxAttempts: 1 }, timeoutMs: 700 });
    expect(agents.responders.asked.tool).toMatchObject([{ name: 'quick', timeoutMs: 700 }]);
  });
});

describe('without Temporal', () => {
  afterEach(() => agents.stopAll());

  it("a deferred call waits in the log, and the session's next driver retries it", async () => {
    ends(lose);
    const cut = world.process({ server: '127.0.0.1:1' });
    const { sessionId } = await submitTo(cut, { address: newAddress() });
    await until(async () => (await agents.types(sessionId)).at(-1) === 'ToolCallDeferred');
    await cut.stop();
    const agent = world.process();
    // Its worker has to start first.
    await until(async () => (await agents.types(sessionId)).includes('TurnCompleted'), 40_000);
    expect(await agents.types(sessionId)).toContain('ToolCallCompleted');
    expect(keysAsked()).toHaveLength(2);
    await agent.stop();
  });
});

describe('a deferred call', () => {
  const heldBack = (more: Parameters<AgentWorld['process']>[0] = {}): TestProcess => {
    const retries = { schedule: () => undefined };
    return agents.process({ config: testConfig({ tools: ['once'] }), retries, ...more });
  };
  const deferred = async (process: TestProcess) => {
    ends(failing('TOOL.UNAVAILABLE'));
    const { sessionId } = await submitTo(process, { address: newAddress() });
    const events = await until(async () => {
      const all = await agents.events(sessionId);
      return all.at(-1)?.type === 'ToolCallDeferred' && all;
    });
    const callId = String(events.at(-1)?.data['callId']);
    return { sessionId, call: { workspace: WORKSPACE, sessionId, callId } };
  };
  beforeEach(() => {
    tool = 'once';
  });
  afterEach(() => agents.stopAll());

  it('ends with its turn without another attempt', async () => {
    const process = heldBack();
    const { sessionId, call } = await deferred(process);
    await process.runtime.cancelTurn({ workspace: WORKSPACE, sessionId, caller: 'spec' });
    const events = await agents.ended(sessionId);
    expect(events.slice(-2)).toMatchObject([
      { type: 'ToolCallFailed', data: { code: 'TOOL.CANCELLED' } },
      { type: 'TurnCancelled' },
    ]);
    expect(await process.runtime.retryTool.retry(call)).toEqual({ over: true, waitMs: 0 });
    expect(keysAsked()).toHaveLength(1);
  });

  it('has an unknown outcome when its retrying process is lost, and no third attempt', async () => {
    const process = heldBack();
    const { sessionId, call } = await deferred(process);
    let answerLate: () => void = () => undefined;
    agents.responders.tool = (request) =>
      new Promise((resolve) => (answerLate = () => resolve(answer(request))));
    const lost = process.runtime.retryTool.retry(call);
    await until(() => keysAsked().length === 2);
    expect(await process.runtime.retryTool.retry(call)).toEqual({ over: true, waitMs: 0 });
    answerLate();
    await lost;
    const types = (await agents.ended(sessionId)).map(({ type }) => type);
    expect(types.filter((type) => /^ToolCall(Completed|Failed|Unknown)$/.test(type))).toEqual([
      'ToolCallUnknown',
    ]);
    expect(keysAsked()).toHaveLength(2);
  });

  it('is not sent by a process that was suspended until its outcome was recorded', async () => {
    const suspension = Promise.withResolvers<void>();
    const claimed = Promise.withResolvers<void>();
    let claims = 0;
    const failpoint = async (name: string): Promise<void> => {
      if (name !== 'agent.tool.claimed' || ++claims !== 2) return;
      claimed.resolve();
      await suspension.promise;
    };
    const process = heldBack({ failpoint });
    const other = heldBack();
    const { sessionId, call } = await deferred(process);
    const suspended = process.runtime.retryTool.retry(call);
    await claimed.promise;
    expect(await other.runtime.retryTool.retry(call)).toEqual({ over: true, waitMs: 0 });
    suspension.resolve();
    await suspended;
    const types = (await agents.ended(sessionId)).map(({ type }) => type);
    expect(types.filter((type) => /^ToolCall(Completed|Failed|Unknown)$/.test(type))).toEqual([
      'ToolCallUnknown',
    ]);
    expect(keysAsked()).toHaveLength(1);
  });

  it('is sent once when two processes retry it at the same time', async () => {
    const [first, second] = [heldBack(), heldBack()];
    const { sessionId, call } = await deferred(first!);
    await Promise.all([first!, second!].map(({ runtime }) => runtime.retryTool.retry(call)));
    for (let over = false; !over;) ({ over } = await first!.runtime.retryTool.retry(call));
    await agents.ended(sessionId);
    expect(keysAsked()).toHaveLength(2);
  });

  // @shows review1-11
  it('carries a deadline that counts a pause after the proof of its claim', async () => {
    let pauses = 0;
    const failpoint = async (name: string): Promise<void> => {
      if (name === 'agent.tool.dispatched' && ++pauses === 2) await letTimePass(3_100);
    };
    const process = heldBack({ failpoint });
    const { call } = await deferred(process);
    await process.runtime.retryTool.retry(call);
    const [first, late] = agents.responders.asked.tool;
    const steadyNow = performance.timeOrigin + performance.now();
    expect((first?.notAfter ?? 0) - (first?.sentAt?.at ?? 0)).toBe(3_000);
    expect(late?.notAfter).toBeLessThan(steadyNow);
  });

  it("is retried by another process, which notifies the session's driver", async () => {
    const driver = heldBack();
    const { sessionId, call } = await deferred(driver);
    const other = heldBack();
    await other.runtime.retryTool.retry(call);
    const events = await agents.ended(sessionId);
    expect(events.at(-1)?.type).toBe('TurnCompleted');
    expect(events.at(-1)?.metadata['epoch']).toBe(1);
  });
});
