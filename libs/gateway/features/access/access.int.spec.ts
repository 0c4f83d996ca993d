import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectNats } from '@antiphon/messaging';
import { silentLogger } from '@antiphon/observability';
import type { RunningService } from '@antiphon/service-host';
import { connectClient } from '@antiphon/testing/client';
import { createGatewayWorld, type GatewayWorld } from '../testing/gateway-world.js';

jest.setTimeout(60_000);

const TOKEN = 'the-right-token-has-over-32-characters';
let world: GatewayWorld;
let gateway: RunningService;
let url: string;
const folder = mkdtempSync(join(tmpdir(), 'antiphon-access-'));
const config = join(folder, 'antiphon.toml');
writeFileSync(
  config,
  '[gateway.limits]\nrequests_per_second = 2\nframes_per_second = 3\n[features]\nworkers_v1 = false\n',
);

beforeAll(async () => {
  world = await createGatewayWorld();
  gateway = await world.start({ ANTIPHON_GATEWAY_TOKEN: TOKEN, ANTIPHON_CONFIG: config });
  url = `127.0.0.1:${gateway.port}`;
});
afterAll(async () => {
  await world?.close();
  rmSync(folder, { recursive: true });
});

const get = async (path: string, token: string): Promise<number> =>
  (await fetch(`http://${url}${path}`, { headers: { authorization: `Bearer ${token}` } })).status;

/** Opens a socket and authenticates it by a first frame. Returns the error of a refused one. */
const connect = async (token: string): Promise<unknown> => {
  const client = await connectClient(`ws://${url}/ws`);
  client.sendRaw(JSON.stringify({ id: 1, method: 'connect', params: { token } }));
  client.sendRaw(JSON.stringify({ id: 2, method: 'ping' }));
  const first = await client.waitFor(
    'an answer',
    ({ type, error }) => type === 'session.ack' || error !== undefined,
  );
  if (first['error'] === undefined) {
    const pong = await client.waitFor('the pong', ({ id }) => id === 2);
    await client.close();
    return pong['result'];
  }
  expect(await client.closed).toBe(4401);
  return first['error'];
};

/** Opens a socket with a header. Returns the status of the refusal, or 101. */
const upgrade = (token: string): Promise<number> =>
  connectClient(`ws://${url}/ws`, { authorization: `Bearer ${token}` }).then(
    async (client) => (await client.close(), 101),
    (error: unknown) => Number(/\d{3}/.exec(String(error))?.[0]),
  );

// @shows E1 review1-1
describe('twenty wrong tokens from one address', () => {
  it('do not refuse the right token over HTTP, and get 429 themselves', async () => {
    const statuses: number[] = [];
    for (let i = 0; i < 20; i++) statuses.push(await get('/api/v1/events', `wrong-${i}`));
    expect(statuses).toEqual([...Array<number>(10).fill(401), ...Array<number>(10).fill(429)]);
    expect(await get('/api/v1/events', TOKEN)).toBe(200);
  });

  it('do not refuse the right token of an upgrade', async () => {
    for (let i = 0; i < 20; i++) expect(await upgrade(`wrong-${i}`)).toBe(429);
    expect(await upgrade(TOKEN)).toBe(101);
  });

  it('do not refuse the right token of a connect frame', async () => {
    for (let i = 0; i < 20; i++) expect(await connect(`wrong-${i}`)).toMatchObject({ code: -32029 });
    expect(await connect(TOKEN)).toBe('pong');
  });
});

describe('a path without a rule', () => {
  it('is refused without a credential and not found with one', async () => {
    expect((await fetch(`http://${url}/nothing`)).status).toBe(401);
    expect(await get('/nothing', TOKEN)).toBe(404);
  });
});

describe('a feature that the configuration turns off', () => {
  it('is refused as not found to a valid credential, and to others as unauthenticated', async () => {
    const claim = async (token: string) => {
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      const init = { method: 'POST', headers, body: '{}' };
      const response = await fetch(`http://${url}/api/v1/tasks/claim`, init);
      return [response.status, ((await response.json()) as { code: string }).code];
    };
    expect(await claim(TOKEN)).toEqual([404, 'GATEWAY.FEATURE_OFF']);
    expect((await claim('wrong'))[1]).toMatch(/UNAUTHENTICATED|TOO_MANY_FAILURES/);
  });
});

describe('a full queue of tasks', () => {
  // @shows M5 agents-A10
  it('refuses a task with 429 and Retry-After, and with -32029 on a socket', async () => {
    const agent = await connectNats({ url: world.nats.url, service: 'agent', logger: silentLogger });
    const error = { kind: 'exhausted', code: 'TASK.QUEUE_FULL', message: 'too many open tasks' };
    agent.connection.subscribe('cmd.agent.task.create', {
      callback: (_error, message) =>
        void message.respond(
          JSON.stringify({ ok: false, error: { ...error, data: { retryAfterSeconds: 5 } } }),
        ),
    });
    await agent.connection.flush();
    const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
    const init = { method: 'POST', headers, body: JSON.stringify({ prompt: 'x' }) };
    const response = await fetch(`http://${url}/api/v1/tasks`, init);
    expect([response.status, response.headers.get('retry-after')]).toEqual([429, '5']);
    expect(await response.json()).toMatchObject({ code: 'TASK.QUEUE_FULL' });
    const client = await connectClient(`ws://${url}/ws`, { authorization: `Bearer ${TOKEN}` });
    client.sendRaw(JSON.stringify({ id: 1, method: 'task.create', params: { prompt: 'x' } }));
    expect((await client.waitFor('the refusal', ({ id }) => id === 1)).error).toMatchObject({
      code: -32029,
      data: { code: 'TASK.QUEUE_FULL', retryAfterSeconds: 5 },
    });
    await client.close();
    await agent.drain();
  });
});

// @shows review1-14
describe('the rate limits of an API key', () => {
  const createKey = async (): Promise<string> => {
    const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ name: 'spec', role: 'viewer' });
    const response = await fetch(`http://${url}/api/v1/keys`, { method: 'POST', headers, body });
    return ((await response.json()) as { token: string }).token;
  };

  it('refuse requests over the burst with 429 and Retry-After, and no other key', async () => {
    const [one, other] = [await createKey(), await createKey()];
    const statuses: number[] = [];
    for (let i = 0; i < 22; i++) statuses.push(await get('/docs/reference.js', one));
    expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(20);
    let last = await fetch(`http://${url}/docs/reference.js`, {
      headers: { authorization: `Bearer ${one}` },
    });
    while (last.status !== 429)
      last = await fetch(`http://${url}/docs/reference.js`, { headers: { authorization: `Bearer ${one}` } });
    expect(Number(last.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(await last.json()).toMatchObject({ code: 'GATEWAY.RATE_LIMITED' });
    expect(await get('/docs/reference.js', other)).toBe(200);
    expect(await get('/docs/reference.js', TOKEN)).toBe(200);
  });

  it('refuse frames over the burst with -32029 under their own ids', async () => {
    const client = await connectClient(`ws://${url}/ws`, { authorization: `Bearer ${await createKey()}` });
    for (let id = 1; id <= 40; id++) client.sendRaw(JSON.stringify({ id: `r${id}`, method: 'ping' }));
    const answer = await client.waitFor('the last answer', ({ id }) => id === 'r40');
    expect(answer.error).toMatchObject({
      code: -32029,
      data: { code: 'GATEWAY.RATE_LIMITED', retryAfterSeconds: expect.any(Number) },
    });
    expect(client.received.find(({ id }) => id === 'r1')?.result).toBe('pong');
    await client.close();
  });
});
