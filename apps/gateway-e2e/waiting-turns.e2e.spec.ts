import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createPool } from '@antiphon/database';
import { createPostgresEventStore } from '@antiphon/event-store';
import { newEvent } from '@antiphon/testing';
import { connectClient, textOf, type SocketClient } from '@antiphon/testing/client';
import { startMockModel, type MockModel, type MockScript } from '@antiphon/testing/providers';
import type { TestStack } from '@antiphon/testing/stack';
import {
  readEvents,
  runCli,
  startStackWith,
  twoVendorConfig,
  waitForAccepted,
  waitForValue,
} from './stack-under-test.js';

jest.setTimeout(120_000);

let script: MockScript = () => ({ text: ['fine'] });
let mock: MockModel;
let stack: TestStack;
let client: SocketClient;
let peers = 0;

beforeAll(async () => {
  mock = await startMockModel((request) => script(request));
  stack = await startStackWith(twoVendorConfig(mock.url), {}, { shareDatabase: true });
  client = await connectClient(stack.wsUrl);
});
afterAll(async () => {
  await client?.close();
  await stack?.stop();
  await mock?.close();
});

const begin = (agent: string, content = 'hello') => {
  const address = { channel: 'test', account: 'e2e', peer: `waiting-${++peers}` };
  return client.stream('chat.send', { ...address, content, agent });
};
const blockedOf = async (stream: ReturnType<typeof begin>) =>
  (await stream.waitFor('blocked', ({ event }) => event === 'blocked')).data;
const stateOf = async (agent: string): Promise<string> => {
  const response = await fetch(`${stack.gatewayUrl}/api/v1/agents/${agent}`);
  return ((await response.json()) as { state: string }).state;
};
const control = (agent: string, action: string, reason?: string) =>
  client.call('agent.control', { agentId: agent, action, ...(reason ? { reason } : {}) });

/** One delta of reasoning, as servers of local models send it. */
const thinking =
  (length: number): MockScript =>
  () => ({
    raw: `data: ${JSON.stringify({ choices: [{ delta: { reasoning_content: 'x'.repeat(length) } }] })}\n\ndata: [DONE]\n\n`,
  });

const hugeArguments: MockScript = () => ({
  tools: [{ id: 'call_1', name: 'calculator', input: { expression: 'x'.repeat(1_100_000) } }],
});

describe('an answer that is larger than an event may be', () => {
  // @shows U47
  it.each<[string, string, MockScript]>([
    ['900,000 characters of text in one piece', 'claude', () => ({ text: ['x'.repeat(900_000)] })],
    ['1,100,000 characters of text in one piece', 'claude', () => ({ text: ['x'.repeat(1_100_000)] })],
    ['500,000 quotes in one piece', 'gpt', () => ({ text: ['"'.repeat(500_000)] })],
    ['3,000,000 characters of text in one piece', 'gpt', () => ({ text: ['x'.repeat(3_000_000)] })],
    ['1,100,000 characters of reasoning in one piece', 'gpt', thinking(1_100_000)],
    ['arguments of 1,100,000 characters', 'gpt', hugeArguments],
    ['3 MB in pieces of 64 KiB', 'gpt', () => ({ text: Array<string>(48).fill('x'.repeat(65_536)) })],
  ])('fails its turn after one call, and no other: %s (%s)', async (_what, agent, reply) => {
    script = reply;
    const before = mock.calls.length;
    const frames = await begin(agent).done();
    expect(mock.calls.length - before).toBe(1);
    expect(frames.find(({ event }) => event === 'error')?.data).toMatchObject({
      ...{
        code: 'PROVIDER.PROTOCOL',
        message: expect.stringMatching(/longer than can be kept|is over \d+|too long/),
      },
    });
    expect(frames.at(-1)?.data).toMatchObject({ status: 'failed' });
    script = () => ({ text: ['fine'] });
    expect(textOf(await begin(agent).done())).toBe('fine');
    expect((await readEvents(stack, { type: 'AgentFailed' })).length).toBe(0);
    expect(await stateOf(agent)).toBe('idle');
  });
});

describe('a turn of a paused agent', () => {
  it('says why it waits and what to do, to its client, to a reader of its session and to the CLI', async () => {
    await control('gpt', 'pause', 'maintenance');
    const turn = begin('gpt');
    const { sessionId } = await waitForAccepted(turn);
    const blocked = {
      ...{ code: 'AGENT.PAUSED', message: 'agent "gpt" is paused: maintenance', until: null },
      remedy: 'resume the agent (antiphon agent resume gpt), or cancel the turn',
    };
    expect(await blockedOf(turn)).toMatchObject(blocked);
    const reader = client.stream('session.resume', { sessionId, after: 0 });
    expect(await blockedOf(reader)).toMatchObject(blocked);
    const behind = client.stream('session.send', { sessionId, content: 'and then?' });
    const { turnId } = await waitForAccepted(behind);
    expect(await blockedOf(behind)).toMatchObject({ ...blocked, turnId });
    const chat = runCli(stack, ['chat', 'hello', '--agent', 'gpt', '--peer', 'cli']);
    await waitForValue('the wait of the command', async () => {
      const waits = await readEvents(stack, { type: 'TurnBlocked' });
      return new Set(waits.map(({ streamId }) => streamId)).size >= 2 ? waits : undefined;
    });
    await control('gpt', 'resume');
    for (const stream of [turn, behind]) {
      const frames = await stream.done();
      expect(textOf(frames)).toBe('fine');
      const offsets = frames.flatMap(({ offset }) => (typeof offset === 'number' ? [offset] : []));
      expect(offsets).toEqual([...offsets].sort((a, b) => a - b));
    }
    const { code, stdout } = await chat;
    expect([code, stdout]).toEqual([
      0,
      expect.stringContaining('[waits: agent "gpt" is paused: maintenance. What to do: resume the agent'),
    ]);
    expect(stdout.trim().endsWith('fine')).toBe(true);
  });
});

describe('an agent in the state error', () => {
  /** Appends the fact as the runtime does after a turn that lost its processes. */
  const fail = async (agentId: string, heldMs: number): Promise<void> => {
    const [spawned] = (await readEvents(stack, { type: 'AgentSpawned' })).filter(
      ({ data }) => data['agentId'] === agentId,
    );
    const at = new Date();
    const retryAt = new Date(at.getTime() + heldMs).toISOString();
    const data = { agentId, actor: 'runtime', reason: null, code: 'TURN.DRIVER_LOST', failures: 1, retryAt };
    const failed = { ...newEvent({ ...data, at: at.toISOString() }), type: 'AgentFailed' };
    const pool = createPool({ url: stack.databaseUrl, applicationName: 'spec' });
    const streams = [
      { streamId: spawned?.streamId ?? '', expectedVersion: 'any' as const, events: [failed] },
    ];
    await createPostgresEventStore(pool).append({ workspace: 'default', streams });
    await pool.end();
  };
  const readyz = async () => {
    const response = await fetch(`${stack.gatewayUrl}/readyz`);
    return { code: response.status, ...((await response.json()) as { status: string; warnings?: unknown }) };
  };

  // @shows U47
  it('is shown by readiness, status and metrics, and tries one waiting turn after its time', async () => {
    await fail('claude', 8_000);
    await waitForValue('the state', async () => ((await stateOf('claude')) === 'error' ? true : undefined));
    const turn = begin('claude');
    expect(await blockedOf(turn)).toMatchObject({
      ...{ code: 'AGENT.ERROR', message: expect.stringContaining('failed with TURN.DRIVER_LOST') },
      until: expect.stringMatching(/^20/),
    });
    const degraded = await waitForValue('the warning', async () => {
      const read = await readyz();
      return read.status === 'degraded' ? read : undefined;
    });
    expect(degraded).toMatchObject({
      code: 200,
      warnings: [{ name: 'agents', detail: expect.stringMatching(/^agents in the state error: 1/) }],
    });
    const status = await runCli(stack, ['status']);
    expect(status.stdout).toMatch(/^antiphon \S+: degraded/);
    expect(status.stdout).toContain('in error    agent claude after TURN.DRIVER_LOST');
    expect(textOf(await turn.done())).toBe('fine');
    await waitForValue('the end of the error', async () =>
      (await stateOf('claude')) === 'idle' ? true : undefined,
    );
    const types = (await readEvents(stack, { type: 'AgentTrialStarted' })).length;
    expect(types).toBe(1);
    await waitForValue('readiness', async () => ((await readyz()).status === 'ready' ? true : undefined));
  });
});
