import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { WebSocket } from 'ws';
import { silentLogger, systemClock, uuidIds } from '@antiphon/observability';
import { until } from '@antiphon/testing';
import { Authenticator } from '../access/authenticator.js';
import { NO_IDENTITIES } from '../access/identities.port.js';
import { NO_LIMITS } from '../access/rate-limits.js';
import { authenticateSocket } from './authenticate-socket.js';
import { ClientConnection, createSharedOutput } from './client-connection.js';
import { attachSocketServer } from './socket-server.js';

const SERVER = fileURLToPath(new URL('fixtures/socket-server.mjs', import.meta.url));
/** 10,000 at night. */
const UPGRADES = Number(process.env['ANTIPHON_UPGRADES'] ?? 1_500);
/** Peers that are connected at the same time. */
const AT_ONCE = 250;

/** Connects as a peer that never ends its side of a connection. */
const connectPeer = async (port: number): Promise<Socket> => {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
};

const upgrade = (path: string, headers = ''): string =>
  `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
  `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n${headers}\r\n`;

/** Sends an upgrade, and bytes that the server does not read. Resolves with the status line. */
const refuse = async (port: number, request: string): Promise<{ socket: Socket; status: string }> => {
  const socket = await connectPeer(port);
  socket.write(`${request}unread`);
  const [chunk] = (await once(socket, 'data')) as [Buffer];
  return { socket, status: chunk.toString('utf8').slice(0, 12) };
};

describe('a server of another process', () => {
  let child: ChildProcess;
  let port: number;
  beforeAll(async () => {
    child = fork(SERVER, { execArgv: [] });
    const [message] = (await once(child, 'message')) as [{ port: number }];
    port = message.port;
  });
  afterAll(() => void child.kill('SIGKILL'));

  const countDescriptors = (): number => readdirSync(`/proc/${child.pid}/fd`).length;

  it(`has no descriptor left after ${UPGRADES} refused upgrades of peers that never end their side`, async () => {
    (await refuse(port, upgrade('/ws', 'Authorization: Bearer wrong\r\n'))).socket.destroy();
    await until(() => countDescriptors() < 40);
    const before = countDescriptors();
    const statuses = new Set<string>();
    for (let sent = 0; sent < UPGRADES; sent += AT_ONCE) {
      const requests = Array.from({ length: AT_ONCE }, () => refuse(port, upgrade('/other')));
      const refused = await Promise.all(requests);
      for (const { status } of refused) statuses.add(status);
      // The peers are still connected: only the server's own end of a connection frees it.
      await until(() => countDescriptors() <= before);
      for (const { socket } of refused) socket.destroy();
    }
    expect([...statuses]).toEqual(['HTTP/1.1 404']);
  }, 120_000);

  it('stops within 3 s while 64 peers do not answer its close frames', async () => {
    const peers = await Promise.all(
      Array.from({ length: 64 }, async () => {
        const socket = await connectPeer(port);
        socket.write(upgrade('/ws'));
        await once(socket, 'data');
        return socket;
      }),
    );
    child.send('stop');
    const [{ stopMs }] = (await once(child, 'message')) as [{ stopMs: number }];
    expect(stopMs).toBeLessThan(3_000);
    for (const peer of peers) peer.destroy();
  });
});

describe('a socket that has not authenticated', () => {
  const TOKEN = 'a-token-of-the-specification-1234';
  const authenticator = new Authenticator({
    gateway: { token: TOKEN, loopbackWithoutToken: true, trustedProxies: [], limits: NO_LIMITS },
    identities: NO_IDENTITIES,
    clock: systemClock,
  });
  const http = createServer();
  const shared = createSharedOutput();
  const received: number[] = [];
  const clients: WebSocket[] = [];
  let server: ReturnType<typeof attachSocketServer>;
  let url: string;

  beforeAll(async () => {
    server = attachSocketServer(http, {
      ...{ authenticator, logger: silentLogger, ids: uuidIds, maxSockets: 100 },
      unauthenticated: { total: 5, perAddress: 3 },
      onSocket: (socket, { address, principal, onAuthenticated }) => {
        const connection = new ClientConnection(socket, { connectionId: 'c', address }, shared, silentLogger);
        const onReady = () => {
          onAuthenticated();
          return (_text: string, bytes: number) => void received.push(bytes);
        };
        const common = { socket, connection, authenticator, principal, capabilities: [], onReady };
        authenticateSocket({ ...common, logger: silentLogger });
      },
    });
    http.listen(0, '127.0.0.1');
    await once(http, 'listening');
    url = `ws://127.0.0.1:${(http.address() as AddressInfo).port}/ws`;
  });
  afterEach(async () => {
    const open = clients.splice(0).filter(({ readyState }) => readyState !== WebSocket.CLOSED);
    await Promise.all(open.map((client) => (client.terminate(), once(client, 'close'))));
  });
  afterAll(async () => {
    await server.close();
    http.close();
  });

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
    await until(() => received.includes(1024 * 1024));
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

  it('is destroyed when it does not answer the close frame of the timeout', async () => {
    const peer = await connectPeer(Number(new URL(url).port));
    peer.write(upgrade('/ws'));
    peer.resume();
    const began = performance.now();
    await once(peer, 'end');
    expect(performance.now() - began).toBeLessThan(8_500);
    peer.destroy();
  });
});
