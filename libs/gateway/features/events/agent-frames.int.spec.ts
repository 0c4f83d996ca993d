import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { AGENT_FRAMES, type AgentFrame, type AgentStateFrame } from '@antiphon/contracts/gateway';
import type { MemoryEntry } from '@antiphon/contracts/memory';
import { transient, type JsonObject } from '@antiphon/kernel';
import { createTestDatabase, startNatsServer, until, type TestNatsServer } from '@antiphon/testing';
import { assembleFrames, connectClient, type SocketClient } from '@antiphon/testing/client';
import type { GatewayRequests } from '../gateway.ports.js';
import { createResumeWorld, type ResumeGateway, type ResumeWorld } from '../testing/resume-world.js';
import { createSessionScript } from '../testing/session-script.js';

jest.setTimeout(60_000);

const at = '2026-11-22T00:00:00.000Z';

let server: TestNatsServer;
let world: ResumeWorld;
let gateways: ResumeGateway[];
const clients: SocketClient[] = [];

const connect = async (index: number): Promise<SocketClient> => {
  const client = await connectClient(gateways[index]?.wsUrl ?? '');
  clients.push(client);
  return client;
};
const framesOf = (client: SocketClient): AgentFrame[] =>
  client.received
    .filter((message) => Object.hasOwn(AGENT_FRAMES, (message as { type?: string }).type ?? ''))
    .map((message) => message as unknown as AgentFrame);
const statesOf = (client: SocketClient, agentId: string): string[] =>
  framesOf(client)
    .filter((frame): frame is AgentStateFrame => frame.type.startsWith('agent_'))
    .filter((frame) => frame.agentId === agentId)
    .map(({ from, to, phase }) => `${from}>${to}${phase === null ? '' : `:${phase}`}`);

const life = (agentId: string, type: string, more: JsonObject = {}) =>
  world.append(`agent-${STREAM_OF[agentId]}`, type, { agentId, actor: 'key/k', reason: null, at, ...more });
const STREAM_OF: Record<string, string> = { main: randomUUID(), helper: randomUUID() };

beforeAll(async () => {
  server = await startNatsServer();
  world = await createResumeWorld(await createTestDatabase(), server.url);
  gateways = [await world.startGateway(), await world.startGateway()];
});
afterAll(async () => {
  await Promise.all(clients.map((client) => client.close()));
  await world?.close();
  await server?.remove();
});

describe('agent.subscribe', () => {
  it('shows each change of state and phase to clients of two gateways, and nothing to one that did not ask', async () => {
    const [one, two, single, legacy] = [
      await connect(0),
      await connect(1),
      await connect(1),
      await connect(0),
    ];
    await life('main', 'AgentSpawned');
    for (const client of [one, two]) await client.call('agent.subscribe');
    expect(await single.call('agent.subscribe', { agent: 'main' })).toMatchObject({
      agents: [{ agentId: 'main', state: 'spawning', phase: null }],
    });
    await life('main', 'AgentReady');
    await life('helper', 'AgentSpawned');
    const script = createSessionScript();
    await world.commit(script.sessionId, script.events);
    for (const events of [script.request(), script.begin(), script.asks('calculator'), script.begin()])
      await world.commit(script.sessionId, events);
    await life('main', 'AgentPaused', { reason: 'a look' });
    await life('main', 'AgentResumed');
    await world.commit(script.sessionId, [...script.answer('42'), ...script.complete()]);
    await life('main', 'AgentTerminated', { result: null });
    const expected = [
      ...['spawning>idle', 'idle>working:listening', 'working>working:thinking', 'working>paused'],
      ...['paused>working:thinking', 'working>working:speaking', 'working>idle', 'idle>terminated'],
    ];
    for (const client of [one, two, single]) {
      await until(() => statesOf(client, 'main').length >= expected.length);
      expect(statesOf(client, 'main')).toEqual(expected);
    }
    expect(statesOf(one, 'helper')).toEqual(['null>spawning']);
    expect(framesOf(one)).toEqual(framesOf(two));
    // A subscriber of one agent gets updates of that agent only.
    expect(new Set(framesOf(single).map(({ type }) => type))).toEqual(
      new Set(['agent_state_update', 'agent.progress']),
    );
    expect(framesOf(single).filter(({ agentId }) => agentId !== 'main')).toEqual([]);
    for (const frame of framesOf(one))
      expect(AGENT_FRAMES[frame.type].safeParse(frame).error).toBeUndefined();
    expect(
      legacy.received.filter((message) => (message as { type?: string }).type !== 'session.ack'),
    ).toEqual([]);
    const progress = framesOf(one).filter((frame) => frame.type === 'agent.progress');
    expect(progress.map(({ kind, status, step }) => `${kind} ${status} ${step}`)).toEqual([
      ...['turn queued null', 'step started 1', 'step completed 1', 'step started 2'],
      ...['step completed 2', 'turn completed null'],
    ]);
  });

  it('begins with the state that the log has, also of turns that are open', async () => {
    const script = createSessionScript();
    await world.commit(script.sessionId, [...script.events, ...script.request(), ...script.begin()]);
    await world.append(`agent-${randomUUID()}`, 'AgentSpawned', {
      agentId: 'late',
      actor: 'local',
      reason: null,
      at,
    });
    const client = await connectClient((await world.startGateway()).wsUrl);
    clients.push(client);
    await life('main', 'AgentResumed');
    const { agents } = (await client.call('agent.subscribe')) as { agents: unknown[] };
    expect(agents).toContainEqual({ agentId: 'main', state: 'working', phase: 'thinking' });
    expect(agents).toContainEqual({ agentId: 'late', state: 'spawning', phase: null });
    await world.commit(script.sessionId, [...script.answer('done'), ...script.complete()]);
    await until(() => statesOf(client, 'main').length >= 2);
    expect(statesOf(client, 'main')).toEqual(['working>working:speaking', 'working>idle']);
  });

  it('shows speaking from the first text of an answer on, before the log has it, and thinking while a tool runs', async () => {
    const script = createSessionScript();
    // This gateway may still read the turn of the test before.
    const early = await connect(0);
    await until(async () => {
      const { agents } = (await early.call('agent.subscribe', { agent: 'main' })) as { agents: object[] };
      return (agents[0] as { state?: string }).state === 'idle';
    });
    const client = await connect(0);
    await client.call('agent.subscribe', { agent: 'main', frames: ['state'] });
    await world.commit(script.sessionId, [...script.events, ...script.request()]);
    // It is from a call that this gateway has not read yet, and waits for it.
    world.announce({ ...script.speech(), attempt: 1 });
    const started = script.begin();
    await world.commit(script.sessionId, started);
    const repeat = setInterval(() => world.announce(script.speech()), 50);
    await until(() => statesOf(client, 'main').at(-1) === 'working>working:speaking');
    const late = await connect(1);
    await until(async () => {
      const { agents } = (await late.call('agent.subscribe', { agent: 'main' })) as { agents: object[] };
      return (agents[0] as { phase?: string }).phase === 'speaking';
    });
    clearInterval(repeat);
    const frame = framesOf(client).at(-1);
    expect(AGENT_FRAMES.agent_state_update.safeParse(frame).error).toBeUndefined();
    const { eventPosition, eventId } = frame as AgentStateFrame;
    expect(await world.eventIdAt(eventPosition)).toBe(eventId);
    const ended = script.speech();
    await world.commit(script.sessionId, script.saysAndAsks('I look.', 'calculator'));
    await until(() => statesOf(client, 'main').at(-1) === 'working>working:thinking');
    // The call has ended: its notification comes too late.
    world.announce(ended);
    await world.commit(script.sessionId, script.begin());
    world.announce(ended);
    await world.commit(script.sessionId, [...script.answer('42'), ...script.complete()]);
    const expected = [
      ...['idle>working:listening', 'working>working:thinking', 'working>working:speaking'],
      ...['working>working:thinking', 'working>working:speaking', 'working>idle'],
    ];
    await until(() => statesOf(client, 'main').length >= expected.length);
    expect(statesOf(client, 'main')).toEqual(expected);
  });

  it('sends memory.event after a message that memory learned from, and refuses it while memory is off', async () => {
    const script = createSessionScript();
    const entry = (eventId: string, object: string): MemoryEntry => ({
      ...{
        memoryId: randomUUID(),
        kind: 'fact',
        text: `user name ${object}`,
        subject: 'user',
        predicate: 'name',
      },
      ...{ object, confidence: 0.9, learnedAt: at, supersededAt: null, eventId, position: 1, source: null },
    });
    const former = entry(randomUUID(), 'Ada');
    const asked: { at: number }[] = [];
    const request = async (_contract: unknown, query: { at: number }) => {
      if (asked.push(query) === 1) throw transient('MESSAGING.NO_RESPONDERS', 'down');
      const eventId = await world.eventIdAt(query.at);
      return {
        entries: [entry(eventId, 'Grace'), former],
        position: query.at,
        head: query.at,
      };
    };
    const memory = { request } as unknown as GatewayRequests;
    const client = await connectClient((await world.startGateway(undefined, undefined, memory)).wsUrl);
    clients.push(client);
    await client.call('agent.subscribe', { agent: 'main', frames: ['memory'] });
    await world.commit(script.sessionId, [...script.events, ...script.request()]);
    await until(() => framesOf(client).length >= 2);
    expect(framesOf(client)).toMatchObject([
      {
        type: 'memory.event',
        agentId: 'main',
        change: 'superseded',
        memoryId: former.memoryId,
        object: 'Ada',
      },
      {
        type: 'memory.event',
        agentId: 'main',
        change: 'learned',
        object: 'Grace',
        sessionId: script.sessionId,
      },
    ]);
    for (const frame of framesOf(client))
      expect(AGENT_FRAMES[frame.type].safeParse(frame).error).toBeUndefined();
    expect(asked).toHaveLength(2);
    const off = await connect(0);
    await expect(off.call('agent.subscribe', { frames: ['memory'] })).rejects.toThrow(/memory_v1 is off/);
  });

  it('sends agent.blocked for an approval and for a rule that stopped a turn', async () => {
    const client = await connect(0);
    await client.call('agent.subscribe', { frames: ['blocked'] });
    const script = createSessionScript();
    await world.commit(script.sessionId, [...script.events, ...script.request()]);
    const [turnId, approvalId] = [randomUUID(), randomUUID()];
    const asked = { turnId, approvalId, callId: randomUUID(), name: 'http-get' };
    await world.append(`session-${script.sessionId}`, 'ApprovalRequested', asked);
    await life('main', 'AgentBlocked', {
      ...{ reason: 'a cycle', code: 'HANDOVER.CYCLE', sessionId: script.sessionId, turnId },
      chain: ['main', 'helper', 'main'],
    });
    await until(() => framesOf(client).length >= 2);
    expect(framesOf(client)).toMatchObject([
      { type: 'agent.blocked', agentId: 'main', code: 'APPROVAL.PENDING', approvalId, tool: 'http-get' },
      {
        type: 'agent.blocked',
        code: 'HANDOVER.CYCLE',
        chain: ['main', 'helper', 'main'],
        message: 'a cycle',
      },
    ]);
  });

  // @shows agents-A12
  it('sends agent.plan with the steps before the first of them starts, and the counts of the file', async () => {
    const client = await connect(0);
    await client.call('agent.subscribe', { frames: ['plan'] });
    const planId = randomUUID();
    const change = { planId, path: 'a.plan.md', actor: 'agent/main', agentId: 'main', at };
    const append = (type: string, more: JsonObject) =>
      world.append(`plan-${planId}`, type, { ...change, ...more });
    const steps = [{ stepId: 's1', text: 'Look', body: '' }];
    await append('PlanCreated', { treeId: randomUUID(), head: '', eol: 'lf', steps });
    await append('PlanFileRendered', { digest: 'd', done: 0, steps: 1 });
    await append('PlanStepStarted', { stepId: 's1', runId: null, sessionId: null, turnId: null });
    await append('PlanStepFailed', { stepId: 's1', code: 'X', message: 'no' });
    await until(() => framesOf(client).length >= 4);
    expect(framesOf(client)).toMatchObject([
      { type: 'agent.plan', change: 'created', path: 'a.plan.md', steps: [{ stepId: 's1', text: 'Look' }] },
      { change: 'file_written', done: 0, total: 1 },
      { change: 'step_started', stepId: 's1', agentId: 'main', planId },
      { change: 'step_failed', stepId: 's1', text: 'no' },
    ]);
    for (const frame of framesOf(client))
      expect(AGENT_FRAMES[frame.type].safeParse(frame).error).toBeUndefined();
  });

  it('leaves a stream in progress on the same socket as it is', async () => {
    const client = await connect(1);
    await client.call('agent.subscribe');
    const script = createSessionScript();
    await world.commit(script.sessionId, [...script.events, ...script.turn('begin')]);
    const stream = client.stream('session.resume', { sessionId: script.sessionId, after: 0 });
    await stream.done();
    const pieces = Array.from({ length: 50 }, (_, n) => `${n} `);
    await world.commit(script.sessionId, [
      ...script.request(),
      ...script.begin(),
      ...script.answer(...pieces),
    ]);
    const before = stream.frames.at(-1)?.offset ?? 0;
    for (const frame of script.frames().filter(({ offset }) => offset > before)) {
      await world.send(script.sessionId, [frame]);
      if (frame.offset % 10 === 0)
        await life('helper', frame.offset % 20 === 0 ? 'AgentPaused' : 'AgentResumed');
    }
    await world.commit(script.sessionId, script.complete());
    const all = script.frames();
    await until(() => (stream.frames.at(-1)?.offset ?? 0) >= (all.at(-1)?.offset ?? 0));
    expect(assembleFrames(stream.frames)).toBe(assembleFrames(all));
    const offsets = stream.frames.map(({ offset }) => offset);
    expect(offsets).toEqual([...offsets].sort((a, b) => a - b));
    const during = client.received.slice(
      client.received.findIndex((message) => message.offset === before),
      client.received.findIndex((message) => message.offset === all.at(-1)?.offset),
    );
    expect(during.some((message) => (message as { type?: string }).type === 'agent_broadcast_state')).toBe(
      true,
    );
    // No frame about an agent has the id of a stream.
    expect(framesOf(client).filter((frame) => 'id' in frame)).toEqual([]);
  });

  it('ends with agent.unsubscribe', async () => {
    const client = await connect(0);
    await client.call('agent.subscribe', { agent: 'helper' });
    expect(await client.call('agent.unsubscribe', { agent: 'helper' })).toEqual({ unsubscribed: true });
    expect(await client.call('agent.unsubscribe')).toEqual({ unsubscribed: false });
    const other = await connect(0);
    await other.call('agent.subscribe');
    await life('helper', 'AgentFailed', { code: 'AGENT.CRASHED' });
    await until(() => framesOf(other).length > 0);
    expect(framesOf(client)).toEqual([]);
  });
});
