import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Body, Controller, Get, Module, Post, Query } from '@nestjs/common';
import { exhausted, invalid } from '@antiphon/kernel';
import { HealthReport, healthContract } from '@antiphon/contracts/messaging';
import { connectNats, createRequestClient } from '@antiphon/messaging';
import type { NatsLink } from '@antiphon/messaging';
import { createLogger, currentContext, silentLogger } from '@antiphon/observability';
import { createTestDatabase, startNatsServer, until } from '@antiphon/testing';
import type { TestDatabase, TestNatsServer } from '@antiphon/testing';
import { RelayModule } from './relay.module.js';
import { startService } from './start-service.js';
import type { RunningService, StartOptions } from './start-service.js';
import { serviceEnv } from './testing/service-env.js';

@Controller('spec')
class SpecController {
  @Get('context')
  context(): unknown {
    return currentContext();
  }

  @Post('echo')
  async echo(@Body() body: unknown): Promise<unknown> {
    await Promise.resolve();
    return { body, correlationId: currentContext()?.correlationId };
  }

  @Get('fail')
  fail(@Query('how') how: string): never {
    if (how === 'invalid') throw invalid('SPEC.INVALID', 'that is wrong', { data: { secret: 'hunter2' } });
    if (how === 'exhausted') throw exhausted('SPEC.FULL', 'no more', { data: { retryAfterSeconds: 12 } });
    throw new TypeError('select * from hunter2 at /srv/secret.ts');
  }
}

@Module({ controllers: [SpecController], imports: [RelayModule.announcing(() => null)] })
class SpecModule {}

@Module({})
class HostedModule {}

jest.setTimeout(30_000);

describe('a started service', () => {
  let server: TestNatsServer;
  let database: TestDatabase;
  let client: NatsLink;
  const lines: Record<string, unknown>[] = [];
  const running: RunningService[] = [];
  const sink = { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) };

  const start = async (options: Partial<StartOptions> = {}): Promise<RunningService> => {
    const service = await startService({
      service: 'memory',
      module: SpecModule,
      env: serviceEnv('memory', database, server.url),
      cwd: '/',
      logger: createLogger({ service: 'memory', sink }),
      ...options,
    });
    running.push(service);
    return service;
  };
  const call = async ({ port }: RunningService, path: string, init: RequestInit = {}) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, init);
    const body = (await response.json()) as Record<string, unknown>;
    return { status: response.status, headers: response.headers, body };
  };

  beforeAll(async () => {
    [server, database] = await Promise.all([startNatsServer(), createTestDatabase()]);
    client = await connectNats({ url: server.url, service: 'gateway', logger: silentLogger });
  });
  afterEach(async () => {
    await Promise.all(running.splice(0).map((service) => service.stop()));
  });
  afterAll(async () => {
    await client.drain();
    await Promise.all([server.remove(), database.drop()]);
  });

  it('applies the configured timeouts of requests in the gateway', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'antiphon-timeouts-'));
    const config = join(folder, 'antiphon.toml');
    writeFileSync(config, '[gateway]\nheader_timeout_s = 1\nbody_timeout_s = 2\n');
    const env = { ...serviceEnv('gateway', database, server.url), ANTIPHON_CONFIG: config };
    const { port } = await start({ service: 'gateway', module: HostedModule, env });
    rmSync(folder, { recursive: true });
    const send = async (text: string): Promise<string> => {
      const socket = connect({ port, host: '127.0.0.1' });
      socket.write(text);
      const chunks: Buffer[] = [];
      for await (const chunk of socket) chunks.push(chunk as Buffer);
      return Buffer.concat(chunks).toString();
    };
    const body =
      'POST /x HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{';
    const began = performance.now();
    for (const answer of await Promise.all([send('GET / HTTP/1.1\r\n'), send(body)])) {
      expect(answer).toMatch(/^HTTP\/1.1 408 /);
      expect(answer).toContain('HTTP.TIMEOUT');
    }
    expect(performance.now() - began).toBeLessThan(6_000);
  });

  it('requires a token for a gateway that listens beyond loopback', async () => {
    const env = {
      ...serviceEnv('gateway', database, server.url),
      ANTIPHON_SERVICE_HTTP_HOST: '0.0.0.0',
    };
    const gateway = { service: 'gateway', module: HostedModule } as const;
    await expect(start({ ...gateway, env })).rejects.toMatchObject({ code: 'GATEWAY.TOKEN_MISSING' });
    const guarded = await start({
      ...gateway,
      env: { ...env, ANTIPHON_GATEWAY_TOKEN: 'a-secret'.repeat(4) },
    });
    expect(guarded.host).toBe('0.0.0.0');
  });

  it('reports its health and facts over HTTP and NATS', async () => {
    const service = await start();
    expect(await call(service, '/healthz')).toMatchObject({ status: 200, body: { service: 'memory' } });
    await until(async () => (await call(service, '/readyz')).status === 200);
    const report = await createRequestClient(client).request(healthContract('memory'), {});
    expect(HealthReport.parse(report)).toMatchObject({
      service: 'memory',
      healthy: true,
      pid: process.pid,
      facts: { relay: { leading: true } },
    });
    expect(report.checks.map(({ name }) => name).sort()).toEqual(['jetstream', 'nats', 'postgresql']);
  });

  it('is unready while NATS is down and recovers with it', async () => {
    const service = await start();
    await until(async () => (await call(service, '/readyz')).status === 200);
    await server.kill();
    await until(async () => (await call(service, '/readyz')).status === 503);
    const { headers, body } = await call(service, '/readyz');
    expect(headers.get('content-type')).toContain('application/problem+json');
    expect(headers.get('retry-after')).toBe('1');
    expect(body).toMatchObject({ status: 503, code: 'SERVICE.NOT_READY' });
    expect(body['detail']).toContain('nats');
    expect(body['detail']).not.toContain('postgresql');
    expect((await call(service, '/healthz')).status).toBe(200);
    await server.start();
    await until(async () => (await call(service, '/readyz')).status === 200);
  });

  it('is unready while PostgreSQL is down', async () => {
    const own = await createTestDatabase();
    const service = await start({ env: serviceEnv('memory', own, server.url) });
    await own.drop();
    await until(async () => (await call(service, '/readyz')).status === 503);
    expect((await call(service, '/readyz')).body['detail']).toContain('postgresql');
  });

  it('uses or creates the ids of a request and returns the request id', async () => {
    const service = await start();
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const given = await call(service, '/spec/context', { headers: { 'x-request-id': 'req-7', traceparent } });
    expect(given.headers.get('x-request-id')).toBe('req-7');
    expect(given.body).toMatchObject({ correlationId: 'req-7', service: 'memory' });
    expect(given.body['traceparent']).toContain('0af7651916cd43dd8448eb211c80319c');
    const made = await call(service, '/spec/context', { headers: { 'x-request-id': 'no good id' } });
    expect(made.body['correlationId']).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('keeps the context while a body arrives in chunks', async () => {
    const service = await start();
    const pieces = new ReadableStream({
      async start(controller) {
        for (const piece of ['{"a"', ':1}']) {
          controller.enqueue(new TextEncoder().encode(piece));
          await new Promise((resolve) => setImmediate(resolve));
        }
        controller.close();
      },
    });
    const init = {
      method: 'POST',
      body: pieces,
      duplex: 'half',
      headers: { 'content-type': 'application/json', 'x-request-id': 'req-8' },
    };
    const { body } = await call(service, '/spec/echo', init as RequestInit);
    expect(body).toEqual({ body: { a: 1 }, correlationId: 'req-8' });
  });

  it.each([
    ['/spec/fail?how=invalid', 400, 'SPEC.INVALID', 'info'],
    ['/spec/fail?how=exhausted', 429, 'SPEC.FULL', 'info'],
    ['/spec/fail?how=odd', 500, 'INTERNAL.UNEXPECTED', 'error'],
    ['/nothing?token=hunter2', 404, 'HTTP.NOT_FOUND', 'info'],
    ['/%zz', 400, 'HTTP.MALFORMED', 'info'],
  ])(
    'answers %s by a problem document that tells no secret, and logs it',
    async (path, status, code, level) => {
      const service = await start();
      const answer = await call(service, path, { headers: { 'x-request-id': `req-${code}` } });
      expect(answer.status).toBe(status);
      expect(answer.headers.get('content-type')).toContain('application/problem+json');
      expect(answer.body).toEqual({
        type: `urn:antiphon:error:${code}`,
        title: expect.any(String),
        status,
        detail: expect.any(String),
        instance: `req-${code}`,
        code,
      });
      expect(JSON.stringify(answer.body)).not.toMatch(/hunter2|secret|srv/);
      expect(lines.find((line) => line['correlationId'] === `req-${code}`)).toMatchObject({
        level,
        code,
      });
      if (status === 429) expect(answer.headers.get('retry-after')).toBe('12');
    },
  );

  it.each([
    ['malformed JSON', '{"a":', 'application/json', 400],
    ['a prototype in JSON', '{"__proto__":{"a":1}}', 'application/json', 400],
    ['more than a MiB', JSON.stringify('x'.repeat(1024 * 1024)), 'application/json', 413],
    ['another media type', '<a/>', 'text/xml', 415],
  ])('rejects %s', async (_what, body, type, status) => {
    const service = await start();
    const answer = await call(service, '/spec/echo', {
      method: 'POST',
      body,
      headers: { 'content-type': type },
    });
    expect(answer.body).toMatchObject({ status, instance: answer.headers.get('x-request-id') });
  });

  it('stops everything it started and serves no further request', async () => {
    const service = await start();
    await service.stop();
    await service.stop();
    await expect(call(service, '/healthz')).rejects.toThrow();
    await expect(createRequestClient(client).request(healthContract('memory'), {})).rejects.toMatchObject({
      code: 'MESSAGING.NO_RESPONDERS',
    });
  });

  it('rejects an incomplete environment and names the variable', async () => {
    const { ANTIPHON_SERVICE_NATS_URL: _, ...env } = serviceEnv('memory', database, server.url);
    await expect(start({ env: { ...env, ANTIPHON_HOME: 'relative' } })).rejects.toMatchObject({
      code: 'SERVICE.BAD_ENVIRONMENT',
      message: expect.stringMatching(/ANTIPHON_SERVICE_NATS_URL.*ANTIPHON_HOME/),
    });
  });
});
