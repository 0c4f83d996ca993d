import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { connect, createServer as createTcpServer } from 'node:net';
import type { AddressInfo, Server as TcpServer } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { silentLogger } from '@antiphon/observability';
import type { EgressPorts } from './fetch-page.js';
import { systemEgress } from './fetch-page.js';
import { VettedClient } from './vetted-client.js';

const PUBLIC = '93.184.216.34';
const GRANTED = 'api.example.com';

/** Ways to write an address of this machine, its network or its cloud in a URL. */
const HOSTS = [
  '127.0.0.1',
  '127.1',
  '2130706433',
  '0x7f000001',
  '0x7f.1',
  '0177.0.0.1',
  '017700000001',
  '[::1]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[0:0:0:0:0:ffff:7f00:0001]',
  '0.0.0.0',
  '[::]',
  '①②⑦.0.0.1',
  'localhost',
];
/** Ways in which a resolver may write such an address. */
const ADDRESSES = [
  ...['127.0.0.1', '127.1', '2130706433', '0x7f000001', '0x7f.1', '0177.0.0.1', '017700000001', '::1'],
  ...['::ffff:127.0.0.1', '::ffff:7f00:1', '0:0:0:0:0:ffff:7f00:0001', '0.0.0.0', '::', '::127.0.0.1'],
  'localhost',
];

describe('a private address', () => {
  let trap: TcpServer;
  let trapped = 0;
  let server: Server;
  let location = '';
  let lookups: string[][];

  beforeAll(async () => {
    trap = createTcpServer((socket) => {
      trapped += 1;
      socket.end('HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 6\r\n\r\nSECRET');
    });
    // All addresses of this machine, of both families.
    await new Promise<void>((resolve) => trap.listen(0, '::', resolve));
    server = createServer((_request, response) => {
      if (location === '') response.setHeader('content-type', 'text/plain').end('public');
      else response.writeHead(302, { location: Buffer.from(location).toString('latin1') }).end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  beforeEach(() => {
    trapped = 0;
    location = '';
    lookups = [];
  });
  afterAll(() => {
    trap.close();
    server.closeAllConnections();
    server.close();
  });

  const trapPort = () => (trap.address() as AddressInfo).port;
  const egress: EgressPorts = {
    resolve: async () => lookups.shift() ?? [PUBLIC],
    // The public address is the spec's server. Each other one is dialled as it is.
    dial: (target) =>
      target.address === PUBLIC
        ? connect((server.address() as AddressInfo).port, '127.0.0.1')
        : systemEgress.dial({ ...target, port: trapPort() }),
  };
  const serve = (more: readonly string[] = []) => {
    const client = new VettedClient({ egress, logger: silentLogger, now: () => 0 });
    const hosts = new Set([GRANTED, `${GRANTED}:${trapPort()}`, ...more]);
    const grant = { plugin: 'p', hosts, timeoutMs: 5_000, idempotencyKey: 'k' };
    const pages = client.serveCall(grant);
    return (url: string) => pages(JSON.stringify({ url }), new AbortController().signal);
  };
  const refused = { head: { end: 'refused', reason: expect.stringMatching(/\S/) } };

  it('is reachable for a client that does not check it', async () => {
    const socket = systemEgress.dial({ address: '127.0.0.1', port: trapPort(), host: 'x', secure: false });
    await new Promise<void>((resolve) => socket.once('data', () => resolve()));
    socket.destroy();
    expect(trapped).toBe(1);
  });

  it.each(HOSTS)('is not reached as http://%s', async (host) => {
    expect(await serve()(`http://${host}:${trapPort()}/`)).toMatchObject(refused);
    expect(await serve()(`http://${host}/`)).toMatchObject(refused);
    expect(trapped).toBe(0);
  });

  it.each(HOSTS)('is not reached by a redirect to http://%s', async (host) => {
    for (const target of [`http://${host}:${trapPort()}/`, `//${host}:${trapPort()}/`]) {
      location = target;
      expect(await serve()(`http://${GRANTED}/`)).toMatchObject(refused);
    }
    expect(trapped).toBe(0);
  });

  it.each(ADDRESSES)('is not reached by a name that resolves to %s after its check', async (address) => {
    const get = serve();
    lookups = [[PUBLIC], [address]];
    expect(await get(`http://${GRANTED}/`)).toMatchObject({ head: { end: 'answered', status: 200 } });
    expect(await get(`http://${GRANTED}:${trapPort()}/`)).toMatchObject(refused);
    // The name of a redirect is resolved again, and one private address of several is enough.
    location = `http://${GRANTED}:${trapPort()}/again`;
    lookups = [[PUBLIC], [PUBLIC, address]];
    expect(await get(`http://${GRANTED}/`)).toMatchObject(refused);
    expect(trapped).toBe(0);
  });
});

describe('a granted host', () => {
  it('is the only one that a plug-in can reach, in its port and below its path', async () => {
    const dialled: string[] = [];
    const egress: EgressPorts = {
      resolve: async (host) => [host === GRANTED ? PUBLIC : '93.184.216.35'],
      dial: ({ address, port }) => {
        dialled.push(`${address}:${port}`);
        return connect({ host: '127.0.0.1', port: 1 });
      },
    };
    const client = new VettedClient({ egress, logger: silentLogger, now: () => 0 });
    const get = async (url: string, granted: string) => {
      const grant = { plugin: 'p', hosts: new Set([granted]), timeoutMs: 5_000, idempotencyKey: 'k' };
      const { head } = await client.serveCall(grant)(JSON.stringify({ url }), new AbortController().signal);
      return head.end;
    };
    for (const [url, granted] of [
      ['https://evil.example/', GRANTED],
      [`https://${GRANTED}.evil.example/`, GRANTED],
      [`https://evil.example#@${GRANTED}/`, GRANTED],
      [`https://${GRANTED}:8443/`, GRANTED],
      [`https://${GRANTED}/`, `${GRANTED}:8443`],
      [`https://${GRANTED}/v1/`, `${GRANTED}/v2`],
      [`https://${GRANTED}/v1/../admin`, `${GRANTED}/v1`],
      [`https://${GRANTED}/v1/%2e%2e/admin`, `${GRANTED}/v1`],
    ] as const)
      expect([url, await get(url, granted)]).toEqual([url, 'refused']);
    expect(dialled).toEqual([]);
    expect(await get(`https://${GRANTED}:8443/v1/items`, `${GRANTED}:8443/v1`)).toBe('failed');
    expect(dialled).toEqual([`${PUBLIC}:8443`]);
  });
});
