import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request, type IncomingHttpHeaders } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectClient } from '@antiphon/testing/client';
import { createGatewayWorld, type GatewayWorld } from '../testing/gateway-world.js';

jest.setTimeout(60_000);

const TOKEN = 'the-right-token-has-over-32-characters';
const PAGE = 'https://app.example';
const HOSTILE = [
  'null',
  'http://app.example',
  'https://app.example:8443',
  'https://APP.example',
  'https://app.example.evil.test',
  'https://evilapp.example',
  'https://app.example@evil.test',
  '*',
];
const folder = mkdtempSync(join(tmpdir(), 'antiphon-origins-'));
let world: GatewayWorld;
let withToken: number;
let local: number;
let closed: number;

beforeAll(async () => {
  world = await createGatewayWorld();
  const path = join(folder, 'antiphon.toml');
  writeFileSync(path, `[gateway]\nallowed_origins = ["${PAGE}"]\n`);
  const start = async (env: Record<string, string>): Promise<number> => (await world.start(env)).port;
  withToken = await start({ ANTIPHON_GATEWAY_TOKEN: TOKEN, ANTIPHON_CONFIG: path });
  local = await start({ ANTIPHON_CONFIG: path });
  closed = await start({ ANTIPHON_GATEWAY_TOKEN: TOKEN });
});
afterAll(async () => {
  await world?.close();
  rmSync(folder, { recursive: true });
});

/** Sends a request with any header, which `fetch` does not. */
const send = (port: number, method: string, path: string, headers: Record<string, string>, body = '') =>
  new Promise<{ status: number; headers: IncomingHttpHeaders; text: string }>((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, method, path, headers }, (response) => {
      let text = '';
      response.on('data', (chunk: Buffer) => (text += chunk.toString()));
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text }),
      );
    });
    sent.on('error', reject).end(body);
  });
const allowOf = (headers: IncomingHttpHeaders): string[] =>
  Object.keys(headers).filter((name) => name.startsWith('access-control-'));
const preflight = (port: number, origin: string, path = '/api/v1/me') =>
  send(port, 'OPTIONS', path, { origin, 'access-control-request-method': 'PATCH' });
const asPage = { origin: PAGE, 'sec-fetch-site': 'cross-site' };
const bearer = { authorization: `Bearer ${TOKEN}` };

describe('a preflight', () => {
  it('of a configured origin is answered without authentication, the same for every path', async () => {
    const known = await preflight(withToken, PAGE);
    expect([known.status, known.text]).toEqual([204, '']);
    expect(known.headers).toMatchObject({
      'access-control-allow-origin': PAGE,
      'access-control-allow-methods': 'GET, HEAD, POST, PUT, PATCH, DELETE',
      'access-control-allow-headers':
        'authorization, content-type, idempotency-key, last-event-id, traceparent',
      vary: 'Origin',
    });
    expect(known.headers['access-control-allow-credentials']).toBeUndefined();
    const plain = ({ headers }: typeof known) => ({ ...headers, date: '', 'x-request-id': '' });
    for (const path of ['/no/such/path', '/api/v1/keys', '/healthz', '/'])
      expect(plain(await preflight(withToken, PAGE, path))).toEqual(plain(known));
  });

  it.each(HOSTILE)('of %p allows nothing', async (origin) => {
    for (const port of [withToken, local]) {
      const { status, headers } = await preflight(port, origin);
      expect([status, allowOf(headers)]).toEqual([403, []]);
    }
  });

  it('allows nothing while no origin is configured', async () => {
    const { status, headers } = await preflight(closed, PAGE);
    expect([status, allowOf(headers), headers.vary]).toEqual([403, [], undefined]);
  });
});

describe('a page of a configured origin', () => {
  it('reads answers, also errors, with its own credential', async () => {
    const served = await send(withToken, 'GET', '/api/v1/me', { ...asPage, ...bearer });
    expect([served.status, served.headers['access-control-allow-origin']]).toEqual([200, PAGE]);
    expect(served.headers['access-control-expose-headers']).toContain('retry-after');
    const unknown = await send(withToken, 'GET', '/no/such/path', { ...asPage, ...bearer });
    expect([unknown.status, unknown.headers['access-control-allow-origin']]).toEqual([404, PAGE]);
    const refused = await send(withToken, 'GET', '/api/v1/me', asPage);
    expect([refused.status, refused.headers['access-control-allow-origin']]).toEqual([401, PAGE]);
    expect(refused.headers['access-control-allow-credentials']).toBeUndefined();
  });

  it('is never the local operator, with no token, a wrong one or a cookie', async () => {
    const me = (headers: Record<string, string>) =>
      send(local, 'GET', '/api/v1/me', { ...asPage, ...headers });
    expect((await send(local, 'GET', '/api/v1/me', {})).status).toBe(200);
    expect((await me({})).status).toBe(401);
    expect((await me({ authorization: 'Bearer any-other-text' })).status).toBe(401);
    const { headers } = await send(local, 'GET', '/api/v1/me', {});
    expect(allowOf(headers)).toEqual([]);
    const socket = await connectClient(`ws://127.0.0.1:${local}/ws`, { origin: PAGE });
    socket.sendRaw(JSON.stringify({ id: 1, method: 'connect', params: { token: 'any-other-text' } }));
    expect(await socket.closed).toBe(4401);
  });

  it('opens a socket, which authenticates by its first frame', async () => {
    const socket = await connectClient(`ws://127.0.0.1:${withToken}/ws`, { origin: PAGE });
    socket.sendRaw(JSON.stringify({ id: 1, method: 'connect', params: { token: TOKEN } }));
    await socket.waitFor('the acknowledgement', ({ type }) => type === 'session.ack');
    await socket.close();
  });

  it('cannot sign in to the dashboard of this gateway', async () => {
    const headers = { ...asPage, 'x-antiphon-csrf': '1', 'content-type': 'application/json' };
    const body = JSON.stringify({ key: TOKEN });
    const reply = await send(withToken, 'POST', '/api/v1/dashboard/session', headers, body);
    expect([reply.status, reply.headers['set-cookie']]).toEqual([403, undefined]);
  });
});

describe('a page of another origin', () => {
  it.each(HOSTILE)('%p is refused, by REST, an event stream and a socket', async (origin) => {
    const headers = { origin, ...bearer };
    for (const port of [withToken, local]) {
      for (const path of ['/api/v1/me', `/api/v1/workspaces/default/chats/${'0'.repeat(8)}/events`]) {
        const reply = await send(port, 'GET', path, headers);
        expect([reply.status, allowOf(reply.headers)]).toEqual([403, []]);
      }
      await expect(connectClient(`ws://127.0.0.1:${port}/ws`, headers)).rejects.toThrow('403');
    }
  });
});
