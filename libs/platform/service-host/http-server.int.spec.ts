import { once } from 'node:events';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Body, Controller, Delete, Get, Module, Param, Post } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { createLogger, silentLogger } from '@antiphon/observability';
import { until } from '@antiphon/testing';
import { configureHttp, createHttpAdapter, type HttpOptions } from './http-server.js';
import { ProblemFilter } from './problem.filter.js';

@Controller()
class SpecController {
  @Post('echo')
  echo(@Body() body: unknown): unknown {
    return { body };
  }

  @Get('files/:path')
  file(@Param('path') path: string): unknown {
    return { path };
  }

  @Delete('files/:path')
  remove(@Param('path') path: string, @Body() body: unknown): unknown {
    return { removed: path, body };
  }

  @Get('never')
  never(): Promise<never> {
    return new Promise(() => undefined);
  }
}

@Module({ controllers: [SpecController] })
class SpecModule {}

const OPTIONS: HttpOptions = { headersTimeoutMs: 1_000, requestTimeoutMs: 2_000, stopTimeoutMs: 500 };
/** Both timeouts are checked each second. */
const CHECK_MS = 1_000;
const lines: Record<string, unknown>[] = [];
const logger = createLogger({
  service: 'gateway',
  sink: { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
});

const start = async (http = OPTIONS): Promise<NestFastifyApplication> => {
  const adapter = createHttpAdapter('gateway', logger, http);
  const options = { logger: false, bodyParser: false } as const;
  const app = await NestFactory.create<NestFastifyApplication>(SpecModule, adapter, options);
  configureHttp(app, { service: 'gateway', logger }, http);
  app.useGlobalFilters(new ProblemFilter(silentLogger));
  await app.listen(0, '127.0.0.1');
  return app;
};
const portOf = (app: NestFastifyApplication): number => (app.getHttpServer().address() as AddressInfo).port;

let app: NestFastifyApplication;
beforeAll(async () => {
  app = await start();
});
afterAll(() => app.close());

it('accepts a path parameter as long as the path of a file', async () => {
  const path = 'docs/ä'.repeat(140);
  const response = await fetch(`http://127.0.0.1:${portOf(app)}/files/${encodeURIComponent(path)}`);
  expect(await response.json()).toEqual({ path });
});

it('accepts a request without a body that has the type of JSON, as clients with a default header send it', async () => {
  const headers = { 'content-type': 'application/json' };
  const at = `http://127.0.0.1:${portOf(app)}`;
  const removed = await fetch(`${at}/files/a`, { method: 'DELETE', headers });
  expect([removed.status, await removed.json()]).toEqual([200, { removed: 'a' }]);
  const empty = await fetch(`${at}/echo`, { method: 'POST', headers, body: '' });
  expect([empty.status, await empty.json()]).toEqual([201, {}]);
});

it('serves a path with a slash at its end as the same path without', async () => {
  const response = await fetch(`http://127.0.0.1:${portOf(app)}/files/a/?x=1`);
  expect(await response.json()).toEqual({ path: 'a' });
});

it.each(['//', '//files/a', '/files/a//', '/files//', '/files/'])('serves no route for %s', async (path) => {
  const response = await fetch(`http://127.0.0.1:${portOf(app)}${path}`);
  expect([response.status, await response.text()]).toEqual([404, expect.not.stringContaining('"path":"a"')]);
});

// @shows review2-2-json-of-many-values
it('refuses JSON of very many values before it is parsed', async () => {
  const send = async (body: string) => {
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(`http://127.0.0.1:${portOf(app)}/echo`, { method: 'POST', headers, body });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  expect(await send(`[${'[],'.repeat(60_000)}[]]`)).toMatchObject({
    ...{ status: 400, body: { code: 'GATEWAY.INVALID_BODY', detail: 'the body has over 100000 values' } },
  });
  expect(await send(`[${'[],'.repeat(40_000)}[]]`)).toMatchObject({ status: 201 });
  expect(await send('{"__proto__":{"a":1}}')).toMatchObject({ status: 400 });
  expect(await send('{"a":')).toMatchObject({ status: 400 });
});

/** Resolves when a socket is closed, also by a reset, which a write to a closed peer causes. */
const closeOf = (socket: Socket): Promise<void> =>
  new Promise((resolve) => socket.once('close', () => resolve()));

interface Outcome {
  readonly text: string;
  readonly ms: number;
}

/**
 * Sends a text one byte at a time. Resolves with the response once the server has closed the
 * connection.
 */
const drip = async (text: string, everyMs: number): Promise<Outcome> => {
  const socket = connect(portOf(app), '127.0.0.1');
  await once(socket, 'connect');
  const began = performance.now();
  let received = '';
  let sent = 0;
  socket.on('data', (chunk: Buffer) => (received += chunk.toString('utf8')));
  socket.on('error', () => undefined);
  const timer = setInterval(() => socket.write(text.charAt(sent++) || ' '), everyMs);
  await closeOf(socket);
  clearInterval(timer);
  return { text: received, ms: performance.now() - began };
};

const HEAD =
  'POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n';

const expectTimeout = ({ text, ms }: Outcome, limitMs: number): void => {
  const [head = '', body = ''] = text.split('\r\n\r\n');
  expect(head).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n/);
  expect(head).toContain('Content-Type: application/problem+json');
  const problem = JSON.parse(body) as { status: number; code: string; instance: string };
  expect(problem).toMatchObject({ status: 408, code: 'HTTP.TIMEOUT' });
  expect(lines).toContainEqual(expect.objectContaining({ correlationId: problem.instance, status: 408 }));
  expect(ms).toBeGreaterThan(limitMs - 100);
  expect(ms).toBeLessThan(limitMs + CHECK_MS + 1_000);
};

describe('a slow request', () => {
  it('is ended by the timeout for headers with a problem document while its headers arrive', async () =>
    expectTimeout(await drip(HEAD, 100), 1_000));

  it('is ended by the timeout for headers when the connection sends nothing', async () =>
    expectTimeout(await drip('', 60_000), 1_000));

  it('is ended by the timeout for requests with a problem document while its body arrives', async () => {
    const socket = connect(portOf(app), '127.0.0.1');
    let text = '';
    socket.on('data', (chunk: Buffer) => (text += chunk.toString('utf8')));
    socket.on('error', () => undefined);
    const began = performance.now();
    socket.write(HEAD);
    const timer = setInterval(() => socket.write(' '), 100);
    await closeOf(socket);
    clearInterval(timer);
    expectTimeout({ text, ms: performance.now() - began }, 2_000);
  });

  it('is refused with 431 when its headers are too large, and with 400 when it is not HTTP', async () => {
    const send = async (text: string): Promise<string> => {
      const socket = connect(portOf(app), '127.0.0.1');
      let received = '';
      socket.on('data', (chunk: Buffer) => (received += chunk.toString('utf8')));
      socket.on('error', () => undefined);
      socket.write(text);
      await closeOf(socket);
      return received;
    };
    expect(await send(`GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 431 .*"code":"HTTP\.HEADERS_TOO_LARGE"/s,
    );
    expect(await send('hello\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 .*"code":"HTTP\.MALFORMED"/s);
  });
});

describe('a JSON route', () => {
  const post = (type: string, body: string): Promise<Response> =>
    fetch(`http://127.0.0.1:${portOf(app)}/echo`, {
      method: 'POST',
      body,
      headers: { 'content-type': type },
    });

  it.each(['application/json', 'application/json; charset=utf-8'])('accepts %s', async (type) => {
    const answer = await post(type, '{"a":1}');
    expect([answer.status, await answer.json()]).toEqual([201, { body: { a: 1 } }]);
  });

  it.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data',
    'application/jsonx',
    'text/xml',
  ])('refuses %s with 415', async (type) => {
    const answer = await post(type, '{"a":1}');
    expect(answer.status).toBe(415);
    expect(await answer.json()).toMatchObject({ status: 415, code: 'HTTP.UNSUPPORTED_MEDIA_TYPE' });
  });

  it('refuses a body without a media type with 415', async () => {
    const answer = await fetch(`http://127.0.0.1:${portOf(app)}/echo`, {
      method: 'POST',
      body: new Blob(['{"a":1}']),
    });
    expect(answer.status).toBe(415);
  });
});

describe('a stop', () => {
  it('ends within its timeout while peers send and read nothing', async () => {
    // No other timeout ends a peer before the bound.
    const own = await start({ headersTimeoutMs: 60_000, requestTimeoutMs: 60_000, stopTimeoutMs: 500 });
    const open = async (text: string): Promise<Socket> => {
      const socket = connect({ port: portOf(own), host: '127.0.0.1', allowHalfOpen: true });
      socket.on('error', () => undefined);
      await once(socket, 'connect');
      socket.write(text);
      return socket;
    };
    const peers = await Promise.all([
      open(''),
      open('GET'),
      open(HEAD),
      open('GET /never HTTP/1.1\r\nHost: a\r\n\r\n'),
    ]);
    const server = own.getHttpServer();
    const countConnections = promisify(server.getConnections.bind(server));
    await until(async () => (await countConnections()) === peers.length);
    const began = performance.now();
    await own.close();
    // The rest is for a busy machine.
    expect(performance.now() - began).toBeLessThan(500 + 10_000);
    for (const peer of peers) peer.destroy();
  });
});
