import { once } from 'node:events';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { WebSocket } from 'ws';
import { until } from '@antiphon/testing';
import { startSocketServer, TOKEN, type SocketServer } from '../testing/socket-server-world.js';

describe('a socket that has not authenticated', () => {
  const clients: WebSocket[] = [];
  let server: SocketServer;
  let url: string;

  beforeAll(async () => {
    server = await startSocketServer();
    url = `ws://127.0.0.1:${server.port}/ws`;
  });
  afterEach(async () => {
    const open = clients.splice(0).filter(({ readyState }) => readyState !== WebSocket.CLOSED);
    await Promise.all(open.map((client) => (client.terminate(), once(client, 'close'))));
  });
  afterAll(() => server.close());

  /** Resolves with the status of a refused upgrade, or 101. */
  const open = async (headers = {}): Promise<{ client: WebSocket; status: number }> => {
    const client = new WebSocket(url, { headers });
    client.on('error', () => undefined);
    const status = await Promise.race([
      once(client, 'open').then(() => (clients.push(client), 101)),
      once(client, 'unexpected-response').then(
        ([, response]) => (response as { statusCode: number }).statusCode,
      ),
    ]);
    return { client, status };
  };
  const connectFrame = JSON.stringify({ id: 1, method: 'connect', params: { token: TOKEN } });
  const closeCode = async (client: WebSocket): Promise<number> =>
    ((await once(client, 'close')) as [number])[0];

  it.each([
    ['one frame', (client: WebSocket) => client.send('x'.repeat(8 * 1024 + 1))],
    ['a frame that does not end', (client: WebSocket) => client.send('x'.repeat(100_000), { fin: false })],
    [
      'many fragments',
      (client: WebSocket) => {
        for (let nth = 0; nth < 900; nth++) client.send('1234', { fin: false });
      },
    ],
  ])('is closed with 1009 when it sends over 8 KiB in %s', async (_what, send) => {
    const { client } = await open();
    send(client);
    expect(await closeCode(client)).toBe(1009);
  });

  it('is closed when it sends over 8 KiB in many pings', async () => {
    const { client } = await open();
    for (let nth = 0; nth < 900; nth++) client.ping('1234');
    // The library destroys a socket whose pings come faster than it reads the pongs.
    expect([1006, 1009]).toContain(await closeCode(client));
  });

  it('may send a token of 4,096 characters, and frames of 1 MiB right behind it', async () => {
    const { client } = await open();
    client.send(JSON.stringify({ method: 'connect', params: { token: 'x'.repeat(4_096) } }));
    expect(await closeCode(client)).toBe(4401);
    const { client: own } = await open();
    own.send(connectFrame);
    own.send('x'.repeat(1024 * 1024));
    await until(() => server.received.includes(1024 * 1024));
  });

  it('is refused with 429 over the limit of its address, until another has authenticated or left', async () => {
    const first = await Promise.all([open(), open(), open()]);
    expect(first.map(({ status }) => status)).toEqual([101, 101, 101]);
    expect((await open()).status).toBe(429);
    const header = { authorization: `Bearer ${TOKEN}` };
    expect((await open(header)).status).toBe(101);
    first[0]?.client.send(connectFrame);
    await until(async () => (await open()).status === 101);
    expect((await open()).status).toBe(429);
    first[1]?.client.terminate();
    await until(async () => (await open()).status === 101);
  });
});
