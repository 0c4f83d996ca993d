import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createTestDatabase, startNatsServer, until, type TestNatsServer } from '@antiphon/testing';
import { connectClient, type SocketClient } from '@antiphon/testing/client';
import { createResumeWorld, type ResumeGateway, type ResumeWorld } from '../testing/resume-world.js';

jest.setTimeout(60_000);

let server: TestNatsServer;
let world: ResumeWorld;
let gateway: ResumeGateway;
const clients: SocketClient[] = [];

beforeAll(async () => {
  server = await startNatsServer();
  world = await createResumeWorld(await createTestDatabase(), server.url);
  gateway = await world.startGateway();
});
afterAll(async () => {
  await Promise.all(clients.map((client) => client.close()));
  await world?.close();
  await server?.remove();
});

const connect = async (): Promise<SocketClient> => {
  const client = await connectClient(gateway.wsUrl);
  clients.push(client);
  return client;
};
const statesOf = (client: SocketClient, agentId: string): string[] =>
  (client.received as readonly Record<string, unknown>[])
    .filter((frame) => frame['type'] === 'agent_broadcast_state' && frame['agentId'] === agentId)
    .map((frame) => `${String(frame['from'])}>${String(frame['to'])}`);
const typesOf = (client: SocketClient): unknown[] =>
  client.received.map(({ type, event }) => type ?? event ?? 'answer');

/** Spawns an agent, and ends its life by steps. */
const live = async (agentId: string): Promise<void> => {
  const stream = `agent-${randomUUID()}`;
  const fact = { agentId, actor: 'key/k', reason: null, at: '2026-11-22T00:00:00.000Z' };
  for (const type of ['AgentSpawned', 'AgentReady', 'AgentPaused']) await world.append(stream, type, fact);
};
const EXPECTED = ['null>spawning', 'spawning>idle', 'idle>paused'];

describe('the states of all agents', () => {
  it('come to a client after one typed frame, without a subscription, and to no other client', async () => {
    const [typed, legacy, malformed] = [await connect(), await connect(), await connect()];
    typed.sendRaw(JSON.stringify({ type: 'ping', id: 1 }));
    // A JSON-RPC request and an unknown type are no typed frames of this protocol.
    legacy.sendRaw(JSON.stringify({ id: 1, method: 'ping' }));
    malformed.sendRaw(JSON.stringify({ id: 1, type: 'no.such.type' }));
    await typed.waitFor('the answer', ({ result }) => result === 'pong');
    await legacy.waitFor('the answer', ({ result }) => result === 'pong');
    await live('one');
    await live('two');
    await until(() => statesOf(typed, 'two').length === 3);
    expect([statesOf(typed, 'one'), statesOf(typed, 'two')]).toEqual([EXPECTED, EXPECTED]);
    expect(typesOf(legacy)).toEqual(['session.ack', 'answer']);
    expect(typesOf(malformed)).toEqual(['session.ack', 'error']);
    expect(new Set(typesOf(typed))).toEqual(new Set(['session.ack', 'answer', 'agent_broadcast_state']));
  });

  it('come to a client that names the capability when it connects, and not for others that it names', async () => {
    const [named, others] = [await connect(), await connect()];
    const connectFrame = (capabilities: string[]) => ({ token: 'x', capabilities });
    await named.call('connect', connectFrame(['x-unknown', 'agent-states']));
    await others.call('connect', connectFrame(['x-unknown']));
    // The subscription of the first client is open once it follows an agent of its own.
    await until(async () => {
      await live(`probe-${randomUUID()}`);
      return typesOf(named).includes('agent_broadcast_state');
    });
    await live('three');
    await until(() => statesOf(named, 'three').length === 3);
    expect(typesOf(others)).toEqual(['session.ack', 'answer']);
  });

  it('come once to a client that also subscribes to all agents', async () => {
    const client = await connect();
    client.sendRaw(JSON.stringify({ type: 'ping', id: 1 }));
    await client.waitFor('the answer', ({ result }) => result === 'pong');
    await client.call('agent.subscribe', { frames: ['state'] });
    await live('four');
    await until(() => statesOf(client, 'four').length >= 3);
    await live('five');
    await until(() => statesOf(client, 'five').length >= 3);
    expect([statesOf(client, 'four'), statesOf(client, 'five')]).toEqual([EXPECTED, EXPECTED]);
  });

  it('do not come to a client whose only typed frame chooses a subscription of its own', async () => {
    const client = await connect();
    client.sendRaw(JSON.stringify({ type: 'agent.subscribe', id: 1, agent: 'six' }));
    await client.waitFor('the answer', ({ id }) => id === 1);
    await live('seven');
    await live('six');
    await until(() => client.received.filter(({ type }) => type === 'agent_state_update').length === 3);
    expect(statesOf(client, 'seven')).toEqual([]);
  });
});
