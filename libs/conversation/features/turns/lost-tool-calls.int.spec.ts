import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createTestDatabase } from '@antiphon/testing';
import {
  createAgentWorld,
  newAddress,
  submitTo,
  testConfig,
  until,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { asksFor, hangs, says } from '@antiphon/agent-features/testing/test-model';

jest.setTimeout(60_000);

let world: AgentWorld;
beforeAll(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
});
afterAll(() => world?.close());

const config = testConfig({ tools: ['echo', 'ls'] });
const QUIET = { leaseMs: 60_000, sweepMs: 50 };

describe('a tool call that ends each process that makes it', () => {
  it.each([
    ['a native one', 'ls', {}],
    ['one in the sandbox', 'echo', { text: 'x' }],
  ])('%s fails after three processes, and its turn completes', async (_, name, input) => {
    let dying: TestProcess | null = null;
    let deadly = '';
    let deaths = 0;
    const accepted = Promise.withResolvers<void>();
    world.model.reply = async ({ messages }) => {
      await accepted.promise;
      return messages.at(-1)?.role === 'tool' ? says('done') : asksFor({ name, input });
    };
    const failpoint = async (point: string, sessionId: string): Promise<void> => {
      if (point !== 'agent.tool.requested' || sessionId !== deadly) return;
      deaths += 1;
      dying?.kill();
      await new Promise(() => undefined);
    };
    const start = () => world.process({ config, times: QUIET, failpoint });
    dying = start();
    const { sessionId } = await submitTo(dying, { address: newAddress() });
    deadly = sessionId;
    accepted.resolve();
    const hasFailed = async () => (await world.types(sessionId)).includes('ToolCallFailed');
    for (let processes = 1; processes <= 3; processes++) {
      await until(async () => deaths === processes || (await hasFailed()));
      await world.handleExit(dying);
      dying = start();
    }
    const events = await world.ended(sessionId);
    expect(events.map(({ type }) => type)).toEqual([
      ...['SessionStarted', 'TurnRequested', 'ModelCallStarted', 'ModelCallCompleted'],
      ...['ToolCallRequested', 'ToolCallRestarted', 'ToolCallRestarted', 'ToolCallFailed'],
      ...['ModelCallStarted', 'ModelCallCompleted', 'TurnCompleted'],
    ]);
    expect(deaths).toBe(3);
    expect(events.find(({ type }) => type === 'ToolCallFailed')?.data).toMatchObject({
      code: 'TOOL.DRIVER_LOST',
    });
    // The agent takes the next turn at once.
    world.model.reply = async () => says('well');
    const next = await submitTo(dying, { address: newAddress() });
    expect((await world.ended(next.sessionId)).at(-1)).toMatchObject({ type: 'TurnCompleted' });
    await world.stopAll();
  });
});

describe('work whose processes stop in order', () => {
  const DRAINING = { ...QUIET, drainMs: 1_050 };
  const never = (): Promise<never> => new Promise(() => undefined);

  /** Ends a process, in order or not, as soon as `isBegun` is true. Returns the next one. */
  const replace = async (process: TestProcess, how: 'stop' | 'kill', isBegun: () => boolean) => {
    await until(isBegun);
    if (how === 'stop') await process.runtime.stop();
    else process.kill();
    await world.handleExit(process);
    return world.process({ config, times: DRAINING });
  };

  const restartsOf = async (sessionId: string) =>
    (await world.events(sessionId))
      .filter(({ type }) => type === 'ToolCallRestarted')
      .map(({ data }) => data['lostDrivers']);

  /** Starts a turn whose call of the sandbox gets no answer before `calls` tries. */
  const startCall = async (process: TestProcess, calls: number) => {
    const { tool } = world.responders;
    const tries = { count: 0 };
    world.responders.tool = (request) => (++tries.count >= calls ? tool(request) : never());
    world.model.reply = async ({ messages }) =>
      messages.at(-1)?.role === 'tool' ? says('done') : asksFor({ name: 'echo', input: { text: 'x' } });
    const { sessionId } = await submitTo(process, { address: newAddress() });
    return { sessionId, tries, restore: () => (world.responders.tool = tool) };
  };

  it('a tool call completes after five stops', async () => {
    let process = world.process({ config, times: DRAINING });
    const { sessionId, tries, restore } = await startCall(process, 6);
    for (let stops = 1; stops <= 5; stops++)
      process = await replace(process, 'stop', () => tries.count === stops);
    const types = (await world.ended(sessionId)).map(({ type }) => type);
    expect(types.filter((type) => type === 'ToolCallReleased')).toHaveLength(5);
    expect(types).toContain('ToolCallCompleted');
    expect(types.at(-1)).toBe('TurnCompleted');
    expect(await restartsOf(sessionId)).toEqual([0, 0, 0, 0, 0]);
    restore();
    await world.stopAll();
  });

  it('a tool call fails after three kills, however many stops are between them', async () => {
    let process = world.process({ config, times: DRAINING });
    const { sessionId, tries, restore } = await startCall(process, Infinity);
    const ends = ['stop', 'kill', 'stop', 'kill', 'stop', 'kill'] as const;
    for (const [index, end] of ends.entries())
      process = await replace(process, end, () => tries.count === index + 1);
    const events = await world.ended(sessionId);
    expect(await restartsOf(sessionId)).toEqual([0, 1, 1, 2, 2]);
    expect(events.find(({ type }) => type === 'ToolCallFailed')?.data).toMatchObject({
      code: 'TOOL.DRIVER_LOST',
    });
    restore();
    await world.stopAll();
  });

  it('a native call is released that does not end within the time of the stop', async () => {
    let isHeld = true;
    world.model.reply = async ({ messages }) =>
      messages.at(-1)?.role === 'tool' ? says('done') : asksFor({ name: 'ls', input: {} });
    const failpoint = (point: string): Promise<void> =>
      point === 'agent.tool.requested' && isHeld ? never() : Promise.resolve();
    const first = world.process({ config, times: DRAINING, failpoint });
    const { sessionId } = await submitTo(first, { address: newAddress() });
    await until(async () => (await world.types(sessionId)).includes('ToolCallRequested'));
    void first.runtime.stop();
    await until(async () => (await world.types(sessionId)).includes('ToolCallReleased'));
    isHeld = false;
    // The process exits at the deadline of its stop.
    first.kill();
    await world.handleExit(first);
    world.process({ config, times: DRAINING });
    expect((await world.ended(sessionId)).at(-1)).toMatchObject({ type: 'TurnCompleted' });
    expect(await restartsOf(sessionId)).toEqual([0]);
    await world.stopAll();
  });

  it('a model call completes after six stops', async () => {
    let process = world.process({ config, times: DRAINING });
    let calls = 0;
    const hang = hangs();
    world.model.reply = (request, sink, call) =>
      ++calls > 6 ? Promise.resolve(says('done')) : hang(request, sink, call);
    const { sessionId } = await submitTo(process, { address: newAddress() });
    for (let stops = 1; stops <= 6; stops++) process = await replace(process, 'stop', () => calls === stops);
    const events = await world.ended(sessionId);
    const aborted = events.filter(({ type }) => type === 'ModelCallAborted').map(({ data }) => data);
    expect(aborted).toHaveLength(6);
    for (const data of aborted) expect(data).toMatchObject({ reason: 'driver_lost', released: true });
    expect(events.at(-1)).toMatchObject({ type: 'TurnCompleted' });
    await world.stopAll();
  });
});
