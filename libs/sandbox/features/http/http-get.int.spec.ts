import { createServer } from 'node:http';
import type { IncomingMessage, RequestListener, Server } from 'node:http';
import { createServer as createTcpServer, connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { bundledPlugins, startSandbox } from '../testing/sandbox.fixture.spec.js';
import type { TestSandbox } from '../testing/sandbox.fixture.spec.js';
import { MAX_PAGE_BYTES, systemEgress } from './fetch-page.js';
import type { DialTarget, EgressPorts } from './fetch-page.js';
import { VettedClient } from './vetted-client.js';
import { silentLogger } from '@antiphon/observability';

jest.setTimeout(60_000);

const PUBLIC = '93.184.216.34';
let server: Server;
let respond: RequestListener;
let asked: IncomingMessage[];
let dialled: DialTarget[];
let resolved: string[];
let addresses: Record<string, readonly string[]>;
let box: TestSandbox;

/**
 * Resolves names to the spec's addresses and connects to its server; the code under test vets them.
 */
const egress: EgressPorts = {
  resolve: async (host) => {
    resolved.push(host);
    return addresses[host] ?? [PUBLIC];
  },
  dial: (target) => {
    dialled.push(target);
    return connect((server.address() as AddressInfo).port, '127.0.0.1');
  },
};
const HOSTS = ['api.example.com', 'other.example.com'];

beforeAll(async () => {
  server = createServer((request, response) => {
    asked.push(request);
    respond(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const capabilities = HOSTS.map((host) => `http:${host}`);
  const plugins = [
    {
      name: 'http-get',
      workspace: '*',
      path: null,
      kind: 'tool' as const,
      capabilities,
      timeoutMs: 5_000,
      memoryMb: 16,
      retry: { maxAttempts: null, maxBackoffMs: null },
    },
  ];
  box = await startSandbox([], {}, { bundledDirectory: await bundledPlugins(), plugins, egress });
});
beforeEach(() => {
  [asked, dialled, resolved, addresses] = [[], [], [], {}];
  respond = (_request, response) => void response.setHeader('content-type', 'text/plain').end('hello');
});
afterEach(() => server.closeAllConnections());
afterAll(async () => {
  await box.close();
  server.close();
});

const get = (url: unknown) => box.call('http-get', { url });
const page = (body: string | Uint8Array, type = 'text/plain', status = 200): void => {
  respond = (_request, response) => void response.writeHead(status, { 'content-type': type }).end(body);
};
const redirect = (location: string, status = 302): void => {
  respond = (request, response) => {
    if (request.url === '/start') response.writeHead(status, { location }).end();
    else
      response
        .writeHead(200, { 'content-type': 'text/plain' })
        .end(`at ${request.headers.host}${request.url}`);
  };
};
const denied = (reason: string) => ({
  outcome: 'failed',
  code: 'TOOL.DENIED',
  message: expect.stringContaining(reason),
});
const said = (content: string, isError = true) => ({
  outcome: 'completed',
  isError,
  content: expect.stringContaining(content),
});

describe('http-get without a granted host', () => {
  let bare: TestSandbox;
  beforeAll(async () => {
    bare = await startSandbox([], {}, { bundledDirectory: await bundledPlugins(), egress });
  });
  afterAll(() => bare.close());

  it('refuses each page and names the missing capability', async () => {
    expect(bare.view('http-get')).toMatchObject({ status: 'loaded', capabilities: [] });
    expect(await bare.call('http-get', { url: 'https://api.example.com/' })).toMatchObject(
      denied('no host is granted to this plug-in; grant one with capabilities = ["http:HOST"]'),
    );
    expect([resolved, dialled]).toEqual([[], []]);
    expect(bare.log.some(({ plugin, level }) => plugin === 'http-get' && level === 'warn')).toBe(true);
  });
});

describe('http-get', () => {
  it('returns the text of a page from the address that was resolved once', async () => {
    page('{"a":"é"}', 'application/json');
    const callId = '0192f0c1-7a2b-7c3d-8e4f-000000000001';
    expect(await box.call('http-get', { url: 'https://api.example.com/v1?q=1' }, { callId })).toMatchObject({
      outcome: 'completed',
      isError: false,
      content: '{"a":"é"}',
    });
    expect(resolved).toEqual(['api.example.com']);
    expect(dialled).toEqual([{ address: PUBLIC, port: 443, host: 'api.example.com', secure: true }]);
    expect(asked[0]?.url).toBe('/v1?q=1');
    expect(asked[0]?.headers).toEqual({
      accept: expect.any(String),
      'accept-encoding': 'identity',
      connection: 'close',
      host: 'api.example.com',
      'idempotency-key': callId,
      'user-agent': 'antiphon-http-get',
    });
  });

  it('decodes a page in another charset', async () => {
    page(Uint8Array.of(0x63, 0x61, 0x66, 0xe9), 'text/html; charset=iso-8859-1');
    expect(await get('http://api.example.com/')).toMatchObject(said('café', false));
  });

  it('returns the status of an error page', async () => {
    page('no such item', 'text/plain', 404);
    expect(await get('https://api.example.com/')).toMatchObject(said('HTTP 404\n\nno such item'));
  });

  it.each([[{}], [{ url: 5 }], ['x']])('refuses the input %j', async (input) => {
    expect(await box.call('http-get', input)).toMatchObject({ isError: true });
    expect(resolved).toEqual([]);
  });

  it.each([
    'https://evil.example/',
    'http://127.0.0.1/',
    'http://169.254.169.254/latest/meta-data/',
    'file:///etc/passwd',
  ])('does not request %s', async (url) => {
    expect(await get(url)).toMatchObject({ outcome: 'failed', code: 'TOOL.DENIED' });
    expect([resolved, dialled]).toEqual([[], []]);
  });

  it.each([
    ['127.0.0.1'],
    ['10.0.0.5'],
    ['169.254.169.254'],
    ['100.64.0.1'],
    ['::1'],
    ['::ffff:127.0.0.1'],
    ['fe80::1'],
    ['fd00:ec2::254'],
    ['224.0.0.1'],
    [PUBLIC, '127.0.0.1'],
  ])('does not connect when a granted name resolves to %s', async (...found) => {
    addresses['api.example.com'] = found;
    expect(await get('https://api.example.com/')).toMatchObject(denied('not of the public internet'));
    expect(dialled).toEqual([]);
  });

  it('connects to the vetted address without a second lookup', async () => {
    const answers = [[PUBLIC], ['127.0.0.1']];
    const rebinding: EgressPorts = { ...egress, resolve: async () => answers.shift() ?? [] };
    const client = new VettedClient({ egress: rebinding, logger: silentLogger, now: () => 0 });
    const serve = client.serveCall({
      plugin: 'p',
      hosts: new Set(HOSTS),
      timeoutMs: 5_000,
      idempotencyKey: 'k',
    });
    const { signal } = new AbortController();
    const first = await serve('{"url":"https://api.example.com/"}', signal);
    expect(first.head).toMatchObject({ end: 'answered', status: 200 });
    expect(dialled.map(({ address }) => address)).toEqual([PUBLIC]);
    const second = await serve('{"url":"https://api.example.com/"}', signal);
    expect(second.head).toMatchObject({ end: 'refused' });
    expect(dialled).toHaveLength(1);
  });
});

describe('a redirect', () => {
  it('is followed to another granted host, which is resolved again', async () => {
    redirect('https://other.example.com/end');
    expect(await get('https://api.example.com/start')).toMatchObject(said('at other.example.com/end', false));
    expect(resolved).toEqual(['api.example.com', 'other.example.com']);
  });

  it.each([
    ['http://127.0.0.1/', 'not granted'],
    ['//169.254.169.254/latest/meta-data/', 'not granted'],
    ['https://evil.example/', 'not granted'],
    ['http://api.example.com/', 'from https to http'],
    ['https://api.example.com:8443/', 'port 8443'],
    ['file:///etc/passwd', 'scheme'],
  ])('to %s is refused', async (location, reason) => {
    redirect(location, 307);
    expect(await get('https://api.example.com/start')).toMatchObject(denied(reason));
    expect(dialled).toHaveLength(1);
  });

  it('to a granted host with a private address is refused', async () => {
    addresses['other.example.com'] = ['192.168.0.1'];
    redirect('https://other.example.com/');
    expect(await get('https://api.example.com/start')).toMatchObject(denied('not of the public internet'));
    expect(dialled).toHaveLength(1);
  });

  it('is refused after the third', async () => {
    redirect('/start');
    expect(await get('https://api.example.com/start')).toMatchObject(denied('more than 3 redirects'));
    expect(dialled).toHaveLength(4);
  });
});

describe('a page that cannot be returned', () => {
  it.each([
    ['binary', () => page('x', 'application/octet-stream'), 'is not text'],
    ['without a type', () => (respond = (_request, response) => void response.end('x')), 'is not text'],
    ['too large', () => page('x'.repeat(MAX_PAGE_BYTES + 1)), 'bytes'],
    [
      'too large without a content-length',
      () =>
        (respond = (_request, response) => {
          response.writeHead(200, { 'content-type': 'text/plain' });
          for (let n = 0; n < 6; n++) response.write('x'.repeat(64 * 1024));
          response.end();
        }),
      'bytes',
    ],
    [
      'compressed',
      () =>
        (respond = (_request, response) =>
          void response
            .writeHead(200, { 'content-type': 'text/plain', 'content-encoding': 'gzip' })
            .end('x')),
      'compressed',
    ],
    [
      'with endless headers',
      () =>
        (respond = (_request, response) =>
          void response.writeHead(200, { 'content-type': 'text/plain', 'x-a': 'x'.repeat(20_000) }).end('x')),
      'HPE_HEADER_OVERFLOW',
    ],
    [
      'cut',
      () =>
        (respond = (request, response) => {
          response.writeHead(200, { 'content-type': 'text/plain', 'content-length': '100' }).write('x');
          setImmediate(() => request.socket.destroy());
        }),
      'could not be had',
    ],
    ['late', () => (respond = () => undefined), 'in time'],
  ])('that is %s is an error result for the model', async (_what, plant, reason) => {
    plant();
    expect(await get('https://api.example.com/')).toMatchObject(said(reason));
  });

  it('is aborted when the call is cancelled', async () => {
    let closed: () => void = () => undefined;
    const left = new Promise<void>((resolve) => (closed = resolve));
    const callId = '0198a000-0000-4000-8000-000000000001';
    respond = (request) => {
      request.socket.once('close', () => closed());
      box.cancel(callId);
    };
    const reply = await box.call('http-get', { url: 'https://api.example.com/' }, { callId });
    expect(reply).toMatchObject({ outcome: 'failed', code: 'TOOL.CANCELLED' });
    await left;
  });

  it('is rate limited by call and by minute', async () => {
    const client = new VettedClient({ egress, logger: silentLogger, now: () => 0 });
    const grant = { plugin: 'p', hosts: new Set(HOSTS), timeoutMs: 5_000, idempotencyKey: 'k' };
    const { signal } = new AbortController();
    const request = '{"url":"https://api.example.com/"}';
    const serve = client.serveCall(grant);
    for (let n = 0; n < 5; n++) expect((await serve(request, signal)).head.end).toBe('answered');
    expect((await serve(request, signal)).head).toMatchObject({
      end: 'refused',
      reason: expect.stringContaining('5 pages'),
    });
    expect(asked.map(({ headers }) => headers['idempotency-key'])).toEqual(['k', 'k.2', 'k.3', 'k.4', 'k.5']);
    for (let n = 5; n < 60; n++) await client.serveCall(grant)(request, signal);
    const over = await client.serveCall(grant)(request, signal);
    expect(new TextDecoder().decode(over.body)).toContain('over 60 pages in a minute');
    expect(dialled).toHaveLength(60);
  });
});

describe('systemEgress', () => {
  it('sends the host name in the TLS handshake', async () => {
    const tcp = createTcpServer();
    await new Promise<void>((resolve) => tcp.listen(0, '127.0.0.1', resolve));
    const hello = new Promise<string>((resolve) =>
      tcp.once('connection', (socket) =>
        socket.once('data', (bytes) => {
          resolve(bytes.toString('latin1'));
          socket.destroy();
        }),
      ),
    );
    const { port } = tcp.address() as AddressInfo;
    const socket = systemEgress.dial({ address: '127.0.0.1', port, host: 'api.example.com', secure: true });
    socket.on('error', () => undefined);
    expect(await hello).toContain('api.example.com');
    tcp.close();
  });
});
