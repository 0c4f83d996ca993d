import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { IssuedKey } from '@antiphon/contracts/keys';
import { connectClient } from '@antiphon/testing/client';
import pg from 'pg';
import { createGatewayWorld, type GatewayWorld } from '../testing/gateway-world.js';

jest.setTimeout(60_000);

const TOKEN = 'the-right-token-has-over-32-characters';
const ADDRESS = { 'x-forwarded-for': '198.51.100.1' };
const folder = mkdtempSync(join(tmpdir(), 'antiphon-sign-ins-'));
let world: GatewayWorld;
let owner: pg.Client;

const start = async (limits: string): Promise<string> => {
  const path = join(folder, 'antiphon.toml');
  writeFileSync(path, `[gateway]\ntrusted_proxies = ["127.0.0.1/32"]\n[gateway.limits]\n${limits}\n`);
  const gateway = await world.start({ ANTIPHON_GATEWAY_TOKEN: TOKEN, ANTIPHON_CONFIG: path });
  return `127.0.0.1:${gateway.port}`;
};

beforeAll(async () => {
  world = await createGatewayWorld();
  owner = new pg.Client({ connectionString: world.database.url });
  await owner.connect();
});
afterAll(async () => {
  await owner?.end();
  await world?.close();
  rmSync(folder, { recursive: true });
});

type Headers = Record<string, string>;

const send = async (url: string, method: string, path: string, headers: Headers, body?: unknown) => {
  const response = await fetch(`http://${url}${path}`, {
    method,
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const json = text === '' ? {} : (JSON.parse(text) as Record<string, unknown>);
  const cookie = response.headers.get('set-cookie')?.split(';', 1)[0] ?? '';
  return { status: response.status, json, cookie, retryAfter: Number(response.headers.get('retry-after')) };
};
type Reply = Awaited<ReturnType<typeof send>>;

const bearer = (token: string): Headers => ({ authorization: `Bearer ${token}` });
const createKey = async (url: string, role = 'viewer'): Promise<IssuedKey & { token: string }> => {
  const { json } = await send(url, 'POST', '/api/v1/keys', bearer(TOKEN), { name: 'spec', role });
  return json as unknown as IssuedKey & { token: string };
};
const signIn = (url: string, body: object, headers: Headers = ADDRESS): Promise<Reply> =>
  send(
    url,
    'POST',
    '/api/v1/dashboard/session',
    { origin: `http://${url}`, 'sec-fetch-site': 'same-origin', 'x-antiphon-csrf': '1', ...headers },
    body,
  );
const isActive = async (url: string, { cookie }: Reply): Promise<boolean> =>
  (await send(url, 'GET', '/api/v1/me', { cookie })).status === 200;
const count = async (sql: string): Promise<number> =>
  Number((await owner.query<{ count: string }>(sql)).rows[0]?.count);
const countGrowth = async (): Promise<number[]> => [
  await count(`select count(*) from api_keys where name like 'dashboard-%'`),
  await count(
    `select count(*) from events where type in ('KeyCreated', 'KeyRevoked') and data->>'name' like 'dashboard-%'`,
  ),
];
/** Sends requests, some at a time, and returns their replies. */
const repeat = async (times: number, work: (index: number) => Promise<Reply>): Promise<Reply[]> => {
  const replies: Reply[] = [];
  for (let from = 0; from < times; from += 100)
    replies.push(...(await Promise.all(Array.from({ length: 100 }, (_, i) => work(from + i)))));
  return replies;
};

describe('sign-ins', () => {
  // @shows review2-6-sign-ins-and-sessions
  it('of one key are refused after the first 20 of 2,000, with the time to wait, and add nothing', async () => {
    const url = await start('');
    const key = await createKey(url);
    const [rows = 0, events = 0] = await countGrowth();
    // Each from another address, so that only the key counts.
    const replies = await repeat(2_000, (index) =>
      signIn(url, { key: key.token }, { 'x-forwarded-for': `10.0.${index >> 8}.${index & 255}` }),
    );
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(20);
    const refused = replies.filter(({ status }) => status !== 200);
    expect(refused.every(({ status, retryAfter }) => status === 429 && retryAfter >= 1)).toBe(true);
    expect(refused.map(({ json }) => json['code'])).toContain('GATEWAY.TOO_MANY_SIGN_INS');
    expect(await countGrowth()).toEqual([rows + 20, events + 20]);
  });

  it('of one address are refused after the first 20, with any keys, and other addresses are not', async () => {
    const url = await start('');
    const keys = await Promise.all(Array.from({ length: 22 }, () => createKey(url)));
    const statuses = (await Promise.all(keys.map(({ token }) => signIn(url, { key: token })))).map(
      (it) => it.status,
    );
    expect(statuses.filter((status) => status === 200)).toHaveLength(20);
    expect(statuses.filter((status) => status === 429)).toHaveLength(2);
    const otherAddress = await signIn(url, { key: keys[0]!.token }, { 'x-forwarded-for': '198.51.100.2' });
    expect(otherAddress.status).toBe(200);
  });

  it('by links, and extensions of sessions, count too', async () => {
    const url = await start('sign_ins = 3');
    const { token } = await createKey(url);
    const link = () => send(url, 'POST', '/api/v1/dashboard/links', bearer(token));
    const links = [await link(), await link(), await link(), await link()];
    expect(links.map(({ status }) => status)).toEqual([201, 201, 201, 429]);
    const codes = links.slice(0, 2).map(({ json }) => String(json['path']).split('=')[1]);
    const first = await signIn(url, { code: codes[0] });
    await signIn(url, { code: codes[1] });
    const own = { origin: `http://${url}`, 'x-antiphon-csrf': '1', ...ADDRESS };
    const extend = ({ cookie }: Reply) => send(url, 'PATCH', '/api/v1/dashboard/session', { ...own, cookie });
    const extended = await extend(first);
    const refused = await extend(extended);
    expect([first.status, extended.status, refused.status]).toEqual([200, 200, 429]);
    // A refused extension leaves the session as it is.
    expect(await isActive(url, extended)).toBe(true);
  });

  it('and reports of one address are charged, though they need no credential', async () => {
    const url = await start('requests_per_second = 1');
    const report = () => send(url, 'POST', '/csp-report', ADDRESS, {});
    const statuses = (await Promise.all(Array.from({ length: 40 }, report))).map(({ status }) => status);
    // A burst is ten requests, and each second adds one.
    expect(statuses.filter((status) => status === 204).length).toBeGreaterThanOrEqual(10);
    expect(statuses.filter((status) => status === 429).length).toBeGreaterThanOrEqual(20);
    const signIns = await Promise.all(Array.from({ length: 20 }, () => signIn(url, { key: 'x' })));
    expect(signIns.map(({ json }) => json['code'])).toContain('GATEWAY.RATE_LIMITED');
    expect((await fetch(`http://${url}/healthz`, { headers: ADDRESS })).status).toBe(200);
  });
});

describe('sessions of one key', () => {
  it('are 20 at most: a further sign-in ends the oldest one', async () => {
    const url = await start('sign_ins = 0');
    const { token, id } = await createKey(url);
    const sessions: Reply[] = [];
    for (let i = 0; i < 25; i++) sessions.push(await signIn(url, { key: token }));
    expect(sessions.map(({ status }) => status)).toEqual(Array<number>(25).fill(200));
    const alive = await Promise.all(sessions.map((session) => isActive(url, session)));
    expect(alive).toEqual([...Array<boolean>(5).fill(false), ...Array<boolean>(20).fill(true)]);
    const other = await createKey(url);
    expect(await isActive(url, await signIn(url, { key: other.token }))).toBe(true);
    const live = `select count(*) from api_keys where name like 'dashboard-session/${id}/%' and status = 'active'`;
    expect(await count(live)).toBe(20);
  });

  // @shows review2-6-sign-ins-and-sessions
  it('share the rate of the key, by requests, sockets and one-time links', async () => {
    const url = await start('requests_per_second = 8\nsign_ins = 0');
    const begun = performance.now();
    const { token } = await createKey(url);
    const sessions: Reply[] = [];
    for (let i = 0; i < 15; i++) sessions.push(await signIn(url, { key: token }));
    const link = await send(url, 'POST', '/api/v1/dashboard/links', bearer(token));
    sessions.push(await signIn(url, { code: String(link.json['path']).split('=')[1] }));
    const replies = await Promise.all(
      Array.from({ length: 600 }, (_, i) =>
        send(url, 'GET', '/api/v1/me', i % 17 === 16 ? bearer(token) : { cookie: sessions[i % 17]!.cookie }),
      ),
    );
    // A burst is 80 requests, and each second adds 8. With a rate of its own, each session has 80.
    const served = replies.filter(({ status }) => status === 200).length;
    const seconds = (performance.now() - begun) / 1_000;
    expect(served).toBeLessThanOrEqual(80 + 8 * Math.ceil(seconds));
    expect(served).toBeLessThan(replies.length);
    const upgrades = Array.from({ length: 40 }, () =>
      connectClient(`ws://${url}/ws`, { cookie: sessions[0]!.cookie, origin: `http://${url}` }).then(
        async (client) => (await client.close(), 'opened'),
        (error: unknown) => String(error),
      ),
    );
    expect((await Promise.all(upgrades)).join()).toContain('429');
  });
});
