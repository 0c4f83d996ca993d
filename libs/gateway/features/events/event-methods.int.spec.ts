import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createTestDatabase, startNatsServer, until, type TestNatsServer } from '@antiphon/testing';
import { connectClient, type Incoming, type SocketClient } from '@antiphon/testing/client';
import { createResumeWorld, type ResumeGateway, type ResumeWorld } from '../testing/resume-world.js';
import { createSessionScript, type SessionScript } from '../testing/session-script.js';
import { MAX_SUBSCRIPTIONS } from './event-methods.js';

jest.setTimeout(30_000);

type LogFrame = Incoming & { readonly cursor?: string; readonly data?: { readonly position?: number } };

let server: TestNatsServer;
let world: ResumeWorld;
let gateway: ResumeGateway;
let script: SessionScript;
const clients: SocketClient[] = [];

const connect = async (of = gateway): Promise<SocketClient> => {
  const client = await connectClient(of.wsUrl);
  clients.push(client);
  return client;
};
const positionsOf = (client: SocketClient, id: unknown): number[] =>
  client.received
    .filter((frame) => frame.id === id && frame.event === 'log')
    .map((frame) => (frame as LogFrame).data?.position ?? 0);

beforeAll(async () => {
  server = await startNatsServer();
  world = await createResumeWorld(await createTestDatabase(), server.url);
  gateway = await world.startGateway();
  script = createSessionScript();
  await world.commit(script.sessionId, [...script.events, ...script.turn('one'), ...script.turn('two')]);
});
afterAll(async () => {
  await Promise.all(clients.map((client) => client.close()));
  await world?.close();
  await server?.remove();
});

describe('events.subscribe', () => {
  it('resumes after the cursor of any frame, on another gateway', async () => {
    const other = await world.startGateway();
    const client = await connect();
    client.sendRaw('{"id":"all","method":"events.subscribe","params":{"from":"start"}}');
    await client.waitFor('the past', ({ event }) => event === 'live');
    const all = positionsOf(client, 'all');
    expect(all).toEqual(Array.from({ length: script.events.length }, (_, n) => n + 1));
    const last = (client.received as LogFrame[]).filter(({ event }) => event === 'log')[2];
    await client.close();
    const next = await connect(other);
    next.sendRaw(JSON.stringify({ id: 1, method: 'events.subscribe', params: { from: last?.cursor ?? '' } }));
    await next.waitFor('the past', ({ event }) => event === 'live');
    expect(positionsOf(next, 1)).toEqual(all.slice(3));
  });

  it('sends nothing after events.unsubscribe, and a subscription of another id continues', async () => {
    const client = await connect();
    for (const id of [1, 2]) client.sendRaw(JSON.stringify({ id, method: 'events.subscribe' }));
    await until(() => client.received.filter(({ event }) => event === 'live').length === 2);
    const unsubscribe = { id: 3, method: 'events.unsubscribe', params: { subscription: 1 } };
    client.sendRaw(JSON.stringify(unsubscribe));
    expect(await client.waitFor('the end', ({ id }) => id === 3)).toMatchObject({
      result: { unsubscribed: true },
    });
    await world.commit(script.sessionId, script.turn('after'));
    await until(() => positionsOf(client, 2).length > 0);
    expect(positionsOf(client, 1)).toEqual([]);
  });

  it('refuses a cursor of another list, a request without an id, and too many subscriptions', async () => {
    const client = await connect();
    client.sendRaw('{"id":1,"method":"events.subscribe","params":{"from":"nonsense"}}');
    expect(await client.waitFor('a refusal', ({ id }) => id === 1)).toMatchObject({
      error: { code: -32602, data: { code: 'GATEWAY.INVALID_CURSOR' } },
    });
    client.sendRaw('{"method":"events.subscribe"}');
    expect(await client.waitFor('a refusal', ({ id }) => id === null)).toMatchObject({
      error: { code: -32602 },
    });
    for (let n = 0; n <= MAX_SUBSCRIPTIONS; n++)
      client.sendRaw(JSON.stringify({ id: `s${n}`, method: 'events.subscribe' }));
    expect(await client.waitFor('a refusal', ({ error }) => error?.code === -32029)).toMatchObject({
      error: { data: { code: 'GATEWAY.TOO_MANY_STREAMS' } },
    });
  });
});
