import { createHmac } from 'node:crypto';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { systemEgress } from '../http/fetch-page.js';
import { callEndpoint, refuseEndpoint } from './call-endpoint.js';
import type { EndpointCall, EndpointPorts } from './call-endpoint.js';

const SECRET = 'canary-of-an-endpoint-77aa';
interface Seen {
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}
let server: Server;
let seen: Seen[] = [];
let answer: (response: ServerResponse) => void;
let port: number;

beforeAll(async () => {
  server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += String(chunk);
    seen.push({ headers: request.headers, body });
    answer(response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ({ port } = server.address() as AddressInfo);
});
afterAll(() => new Promise((resolve) => server.close(resolve)));
beforeEach(() => {
  seen = [];
  answer = (response) => response.end('done');
});

const call = (more: Partial<EndpointCall> = {}, ports: Partial<EndpointPorts> = {}) =>
  callEndpoint(
    {
      ...{ url: new URL(`http://127.0.0.1:${port}/tool?a=1`), secret: SECRET, attemptId: 'attempt-1' },
      ...{ idempotencyKey: 'key-1', body: '{"a":1}', timeoutMs: 2_000, timestamp: 1_800_000_000 },
      signal: new AbortController().signal,
      ...more,
    },
    { egress: systemEgress, privateHosts: ['127.0.0.1', 'inside.example'], maxBytes: 1_000, ...ports },
  );

describe('a call at an endpoint', () => {
  it('is one POST with the key of the call, signed as Standard Webhooks does', async () => {
    expect(await call()).toEqual({ end: 'answered', status: 200, isJson: false, body: 'done' });
    const [{ headers, body } = { headers: {}, body: '' }] = seen;
    const signed = createHmac('sha256', SECRET).update(`attempt-1.1800000000.${body}`).digest('base64');
    expect(headers).toMatchObject({
      ...{ 'webhook-id': 'attempt-1', 'webhook-timestamp': '1800000000' },
      ...{ 'webhook-signature': `v1,${signed}`, 'idempotency-key': 'key-1' },
    });
    expect(JSON.stringify(seen)).not.toContain(SECRET);
  });

  it('follows no redirect', async () => {
    answer = (response) => response.writeHead(307, { location: '/elsewhere' }).end();
    expect(await call()).toMatchObject({ end: 'answered', status: 307 });
    expect(seen).toHaveLength(1);
  });

  it('is lost when the connection ends after it was sent', async () => {
    answer = (response) => response.destroy();
    expect(await call()).toEqual({ end: 'lost' });
    expect(seen).toHaveLength(1);
  });

  it('was not sent when nothing listens, or when the name has no address', async () => {
    const closed = createServer();
    await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve));
    const { port: free } = closed.address() as AddressInfo;
    await new Promise((resolve) => closed.close(resolve));
    expect(await call({ url: new URL(`http://127.0.0.1:${free}/`) })).toEqual({
      ...{ end: 'unreached', reason: 'ECONNREFUSED' },
    });
    const egress = { ...systemEgress, resolve: async () => [] };
    expect(await call({}, { egress })).toMatchObject({ end: 'unreached' });
  });

  it('is not sent when the name is not resolved in time', async () => {
    const egress = { ...systemEgress, resolve: () => new Promise<string[]>(() => undefined) };
    expect(await call({ timeoutMs: 100 }, { egress })).toMatchObject({ end: 'unreached' });
    expect(seen).toEqual([]);
  });

  it.each(['whsec_', 'whsec_!!!'])('is not signed by an empty key when the secret is %s', async (secret) => {
    await call({ secret });
    const empty = createHmac('sha256', '').update('attempt-1.1800000000.{"a":1}').digest('base64');
    expect(seen[0]?.headers['webhook-signature']).toMatch(/^v1,/);
    expect(seen[0]?.headers['webhook-signature']).not.toBe(`v1,${empty}`);
  });

  it('ends at its timeout, and when it is cancelled', async () => {
    answer = () => undefined;
    expect(await call({ timeoutMs: 100 })).toEqual({ end: 'timeout' });
    const cancelled = new AbortController();
    const ending = call({ signal: cancelled.signal });
    while (seen.length < 2) await new Promise((resolve) => setImmediate(resolve));
    cancelled.abort();
    expect(await ending).toEqual({ end: 'cancelled' });
  });

  it('refuses an answer over the limit', async () => {
    answer = (response) => response.end('x'.repeat(1_001));
    expect(await call()).toMatchObject({ end: 'too_large' });
  });

  it.each(['127.0.0.1', '10.0.0.1', '169.254.169.254', '::1', '::ffff:127.0.0.1'])(
    'connects to no name that leads to %s, which the operator did not allow',
    async (address) => {
      const egress = { ...systemEgress, resolve: async () => ['203.0.113.7', address] };
      const end = await call({ url: new URL(`http://tool.example:${port}/`) }, { egress });
      expect(end).toMatchObject({ end: 'unreached', reason: expect.stringContaining('public internet') });
      expect(seen).toEqual([]);
    },
  );

  it('connects to a host that the operator allows', async () => {
    const egress = { ...systemEgress, resolve: async () => ['127.0.0.1'] };
    expect(await call({ url: new URL(`http://inside.example:${port}/`) }, { egress })).toMatchObject({
      end: 'answered',
    });
  });
});

describe('the URL of an endpoint', () => {
  it.each([
    ['ftp://tools.example.com/', 'http or https'],
    ['https://user:word@tools.example.com/', 'credentials'],
    ['http://tools.example.com/', 'needs https'],
    ['https://127.0.0.1/', 'public internet'],
    ['https://[::1]/', 'public internet'],
    ['https://0x7f.1/', 'public internet'],
    ['nothing', 'not a URL'],
  ])('%s is refused', (url, reason) => expect(refuseEndpoint(url, [])).toContain(reason));

  it('may have a public host over https, or a host that the operator allows', () => {
    expect(refuseEndpoint('https://tools.example.com/a', [])).toBeNull();
    expect(refuseEndpoint('http://127.0.0.1:81/', ['127.0.0.1:81'])).toBeNull();
    expect(refuseEndpoint('http://127.0.0.1:82/', ['127.0.0.1:81'])).not.toBeNull();
  });
});
