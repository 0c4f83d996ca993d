import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { WebSocket } from 'ws';
import { silentLogger, systemClock, uuidIds } from '@antiphon/observability';
import { Authenticator, LOCAL_OPERATOR } from '../access/authenticator.js';
import { NO_IDENTITIES } from '../access/identities.port.js';
import { NO_LIMITS } from '../access/rate-limits.js';
import { ClientConnection, createSharedOutput } from './client-connection.js';
import type { MethodTable } from './rpc-method.js';
import { RpcSession } from './rpc-session.js';
import { attachSocketServer } from './socket-server.js';

const http = createServer();
const buffers = createSharedOutput();
const connections: ClientConnection[] = [];
let url = '';
let latest: WebSocket | undefined;
const serverSides = new Map<WebSocket, WebSocket>();
let server: ReturnType<typeof attachSocketServer>;

const methods: MethodTable = new Map<string, () => Promise<string | undefined>>([
  // Never settles, so that its requests stay open.
  ['wait', () => new Promise(() => undefined)],
  ['ping', () => Promise.resolve('pong')],
]);

beforeAll(async () => {
  const authenticator = new Authenticator({
    gateway: { token: null, loopbackWithoutToken: true, trustedProxies: [], limits: NO_LIMITS },
    identities: NO_IDENTITIES,
    clock: systemClock,
  });
  server = attachSocketServer(http, {
    authenticator,
    logger: silentLogger,
    ids: uuidIds,
    maxSockets: 2,
    onSocket: (socket, { address }) => {
      latest = socket;
      const connection = new ClientConnection(
        socket,
        { connectionId: `c${connections.length}`, address },
        buffers,
        silentLogger,
      );
      connections.push(connection);
      const { limits } = authenticator;
      const session = { connection, methods, limits, principal: LOCAL_OPERATOR, traceparent: undefined };
      const rpc = new RpcSession({ ...session, logger: silentLogger, ids: uuidIds });
      socket.on('message', (data: Buffer) => rpc.receive(data.toString('utf8'), data.length));
    },
  });
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  url = `ws://127.0.0.1:${(http.address() as AddressInfo).port}/ws`;
});
afterAll(async () => {
  await server.close();
  http.close();
});

const open = async (): Promise<WebSocket> => {
  const socket = new WebSocket(url);
  await once(socket, 'open');
  serverSides.set(socket, latest as WebSocket);
  return socket;
};
/** Resolves once the server has closed its side. */
const leave = async (client: WebSocket): Promise<void> => {
  const left = serverSides.get(client);
  const noticed = left && once(left, 'close');
  client.terminate();
  await noticed;
};

describe('a gateway', () => {
  it('refuses a socket over the limit, and accepts one after another has closed', async () => {
    const [first, second] = [await open(), await open()];
    const third = new WebSocket(url);
    const [, response] = (await once(third, 'unexpected-response')) as [unknown, { statusCode: number }];
    expect(response.statusCode).toBe(429);
    third.on('error', () => undefined).terminate();
    await leave(first);
    const fourth = await open();
    await Promise.all([leave(second), leave(fourth)]);
  });

  it('refuses an open request over the limit with its id, and handles the next request', async () => {
    const client = await open();
    const answers: { id: number; error?: { message: string; data: { requestId: string } } }[] = [];
    client.on('message', (data: Buffer) => answers.push(JSON.parse(data.toString('utf8')) as never));
    for (let id = 1; id <= 257; id++) client.send(JSON.stringify({ id, method: 'wait', params: {} }));
    client.send(JSON.stringify({ id: 258, method: 'nothing' }));
    while (answers.length < 2) await once(client, 'message');
    expect(answers.sort((a, b) => a.id - b.id)).toMatchObject([
      { id: 257, error: { message: 'too many open requests' } },
      { id: 258, error: { code: -32601 } },
    ]);
    await leave(client);
  });

  it.each([
    ['9007199254740993', 'a number over 2^53'],
    ['-1e300', 'a large number'],
    ['1e400', 'a number that is no double'],
    ['{"a":1}', 'an object'],
  ])('refuses the id %s, %s, with the id null', async (id) => {
    const client = await open();
    client.send(`{"id":${id},"method":"wait","params":{}}`);
    const [answer] = (await once(client, 'message')) as [Buffer];
    expect(JSON.parse(answer.toString('utf8'))).toMatchObject({ id: null, error: { code: -32600 } });
    await leave(client);
  });

  it('refuses an id of an open request with the id null, and accepts an id again after its response', async () => {
    const client = await open();
    const answers: { id: unknown; error?: { code: number; message: string }; result?: unknown }[] = [];
    client.on('message', (data: Buffer) => answers.push(JSON.parse(data.toString('utf8')) as never));
    const call = async (method: string): Promise<unknown> => {
      const before = answers.length;
      client.send(JSON.stringify({ id: 'a', method, params: {} }));
      while (answers.length === before) await once(client, 'message');
      return answers.at(-1);
    };
    expect(await call('ping')).toEqual({ id: 'a', result: 'pong' });
    expect(await call('ping')).toEqual({ id: 'a', result: 'pong' });
    client.send(JSON.stringify({ id: 'a', method: 'wait', params: {} }));
    const refused = { id: null, error: { code: -32600, message: expect.stringContaining('"a"') } };
    expect(await call('ping')).toMatchObject(refused);
    await leave(client);
  });

  it('closes a client that does not read with 1013, and serves the others', async () => {
    const [slow, fast] = [await open(), await open()];
    const [toSlow, toFast] = connections.slice(-2) as [ClientConnection, ClientConnection];
    slow.pause();
    const text = 'x'.repeat(256 * 1024);
    // The kernel's buffers hold a part. The rest accumulates in the process until the limit closes
    // the client.
    for (let offset = 1; offset <= 128; offset++) toSlow.frame(1, 's', { event: 'text', data: text, offset });
    toFast.frame(1, 's', { event: 'text', data: 'still here', offset: 1 });
    const [heard] = (await once(fast, 'message')) as [Buffer];
    expect(JSON.parse(heard.toString('utf8'))).toMatchObject({ data: 'still here' });
    const read: number[] = [];
    slow.on('message', (data: Buffer) =>
      read.push((JSON.parse(data.toString('utf8')) as { offset: number }).offset),
    );
    const closed = once(slow, 'close') as Promise<[number, Buffer]>;
    slow.resume();
    const [code, reason] = await closed;
    // The client reads all earlier frames before the close, whose reason names the last of them.
    expect(read.length).toBeGreaterThan(0);
    expect([code, reason.toString('utf8')]).toEqual([
      1013,
      `too slow: resume session s after ${read.at(-1)}`,
    ]);
    await leave(fast);
  });
});
