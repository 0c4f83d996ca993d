import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createTestDatabase, startNatsServer, until, type TestNatsServer } from '@antiphon/testing';
import { connectClient, type Incoming, type SocketClient } from '@antiphon/testing/client';
import { createResumeWorld, type ResumeGateway, type ResumeWorld } from '../testing/resume-world.js';
import { createSessionScript, type SessionScript } from '../testing/session-script.js';

jest.setTimeout(120_000);

const LIMITS = { socketBytes: 512 * 1024, totalBytes: 1024 * 1024 };
/** Together far more than the kernel buffers of a connection. */
const TURNS = 30;
const PIECES = Array.from({ length: 20 }, (_, n) => `${n} `.padEnd(32 * 1024, 'x'));

type LogFrame = Incoming & { readonly cursor?: string; readonly data?: { readonly position?: number } };

let server: TestNatsServer;
let world: ResumeWorld;
let gateway: ResumeGateway;
let script: SessionScript;
const clients: SocketClient[] = [];

const connect = async (): Promise<SocketClient> => {
  const client = await connectClient(gateway.wsUrl);
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
  gateway = await world.startGateway(LIMITS);
  script = createSessionScript();
  await world.commit(script.sessionId, [...script.events, ...script.turn('begin')]);
});
afterAll(async () => {
  await Promise.all(clients.map((client) => client.close()));
  await world?.close();
  await server?.remove();
});

describe('events.subscribe', () => {
  it('delivers no faster than the client reads, and the client then gets every event', async () => {
    const [fast, slow] = [await connect(), await connect()];
    for (const client of [fast, slow])
      client.sendRaw(JSON.stringify({ id: 'all', method: 'events.subscribe', params: { from: 'start' } }));
    await slow.waitFor('the past', ({ event }) => event === 'live');
    slow.socket.pause();
    const held: number[] = [];
    for (let turn = 0; turn < TURNS; turn++) {
      await world.commit(script.sessionId, script.turn(...PIECES));
      held.push(gateway.heldBytes());
    }
    const end = script.events.length;
    await until(() => positionsOf(fast, 'all').length >= end, 60_000);
    held.push(gateway.heldBytes());
    // A frame is sent while at most 64 KiB wait; one has at most some 700 KB.
    expect(Math.max(...held)).toBeLessThanOrEqual(LIMITS.totalBytes);
    slow.socket.resume();
    await until(() => positionsOf(slow, 'all').length >= end, 60_000);
    expect(positionsOf(slow, 'all')).toEqual(positionsOf(fast, 'all'));
    expect(positionsOf(slow, 'all')).toEqual(Array.from({ length: end }, (_, n) => n + 1));
  });
});
