import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { sessionStream } from '@antiphon/contracts/agent';
import type { IssuedKey } from '@antiphon/contracts/keys';
import { createPool } from '@antiphon/database';
import { createPostgresEventStore } from '@antiphon/event-store';
import pg from 'pg';
import { createGatewayWorld, type GatewayWorld } from '../testing/gateway-world.js';

jest.setTimeout(120_000);

const TOKEN = 'the-right-token-has-over-32-characters';
const EVENTS = 6_000;
/** Inserted directly and after the log, because only the time of their search is tested. */
const FILL_SQL = `insert into events (position, workspace, category, stream_id, stream_version, event_id, type, schema_version,
    data, metadata, recorded_at, hash)
  select 1000000 + n, 'noisy', 'session', 'session-' || (n / 100), n % 100 + 1, gen_random_uuid(), 'TurnRequested', 1,
    jsonb_build_object('content', repeat(md5(n::text), 20)), '{}', now(), ''
  from generate_series(1, ${EVENTS}) n`;
const SEARCHES = `select count(*)::int as count from pg_stat_activity
  where datname = current_database() and state = 'active' and query like '%lower(data::text)%' and pid <> pg_backend_pid()`;
const session = randomUUID();

const folder = mkdtempSync(join(tmpdir(), 'antiphon-heavy-'));
let world: GatewayWorld;
let owner: pg.Client;
let url: string;
let viewer: string;
let neighbour: string;

type Key = IssuedKey & { readonly token: string };

const post = async (path: string, token: string, body: object): Promise<unknown> => {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const reply = await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  expect(reply.status).toBe(201);
  return reply.json();
};
const createWorkspace = async (id: string): Promise<Key> =>
  ((await post('/api/v1/workspaces', TOKEN, { id })) as { key: Key }).key;

/** Appends a session of 3 MB. */
const appendSession = async (): Promise<void> => {
  const pool = createPool({ url: world.database.urlFor('agent'), applicationName: 'spec' });
  const store = createPostgresEventStore(pool, {});
  for (let i = 0; i < 6; i++)
    await store.append({
      workspace: 'noisy',
      streams: [
        {
          ...{ streamId: sessionStream(session), expectedVersion: 'any' },
          events: Array.from({ length: 5 }, () => ({
            ...{ eventId: randomUUID(), type: 'TurnRequested', schemaVersion: 1 },
            data: { turnId: randomUUID(), content: randomUUID().repeat(2_800) },
            metadata: { correlationId: 'spec', service: 'agent' },
          })),
        },
      ],
    });
  await store.close();
  await pool.end();
};

beforeAll(async () => {
  world = await createGatewayWorld();
  owner = new pg.Client({ connectionString: world.database.url });
  await owner.connect();
  const config = join(folder, 'antiphon.toml');
  writeFileSync(config, '[gateway.limits]\nrequests_per_second = 0\n');
  const gateway = await world.start({ ANTIPHON_GATEWAY_TOKEN: TOKEN, ANTIPHON_CONFIG: config });
  url = `http://127.0.0.1:${gateway.port}`;
  const noisy = await createWorkspace('noisy');
  neighbour = (await createWorkspace('quiet')).token;
  viewer = ((await post('/api/v1/keys', noisy.token, { name: 'viewer', role: 'viewer' })) as Key).token;
  await owner.query(FILL_SQL);
  await appendSession();
  await owner.query('analyze events');
});
afterAll(async () => {
  await owner?.end();
  await world?.close();
  rmSync(folder, { recursive: true });
});

interface Reply {
  readonly status: number;
  readonly retryAfter: string | null;
}

const read = async (path: string, token: string): Promise<Reply> => {
  const reply = await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${token}` } });
  await reply.arrayBuffer();
  return { status: reply.status, retryAfter: reply.headers.get('retry-after') };
};

/** Reads small things of another workspace: its keys, and a turn. Returns the times, ms. */
const timesOfNeighbour = async (count: number): Promise<number[]> => {
  const times: number[] = [];
  for (let i = 0; i < count; i++) {
    const at = performance.now();
    const keys = await read('/api/v1/keys', neighbour);
    const turn = await read(`/api/v1/turns/${session}`, neighbour);
    times.push(performance.now() - at);
    expect([keys.status, turn.status]).toEqual([200, 404]);
  }
  return times;
};
/** Returns the value of a gauge of the gateway. */
const gaugeOf = async (name: string): Promise<number> => {
  const reply = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } });
  const line = (await reply.text())
    .split('\n')
    .find((one) => one.startsWith(`${name} `) || one.startsWith(`${name}{`));
  return Number(line?.split(' ').at(-1));
};
const p95 = (times: readonly number[]): number =>
  [...times].sort((a, b) => a - b)[Math.floor(times.length * 0.95)] ?? 0;

describe('heavy reads of one viewer', () => {
  // @shows review2-7-heavy-reads
  it.each<[string, number, string]>([
    ['200 text searches', 200, '/api/v1/events?text=not-there'],
    ['40 exports of 3 MB', 40, `/api/v1/sessions/${session}/export`],
  ])('%s at once run two at a time, and a neighbour does not wait for them', async (_what, count, path) => {
    await timesOfNeighbour(20);
    const quiet = p95(await timesOfNeighbour(100));
    const begun = performance.now();
    let isDone = false;
    const ends: number[] = [];
    const one = async (): Promise<Reply> => {
      const reply = await read(path, viewer);
      ends.push(performance.now() - begun);
      return reply;
    };
    const all = Promise.all(Array.from({ length: count }, one)).finally(() => (isDone = true));
    const searches: number[] = [];
    const gauges = { running: [] as number[], waiting: [] as number[] };
    const times: number[] = [];
    while (!isDone) {
      times.push(...(await timesOfNeighbour(10)));
      gauges.running.push(await gaugeOf('antiphon_heavy_requests_running'));
      gauges.waiting.push(await gaugeOf('antiphon_heavy_requests_waiting'));
      searches.push((await owner.query<{ count: number }>(SEARCHES)).rows[0]?.count ?? 0);
    }
    const replies = await all;
    const tookMs = performance.now() - begun;
    const refused = replies.filter(({ status }) => status !== 200);
    const isPolite = ({ status, retryAfter }: Reply): boolean =>
      [429, 503].includes(status) && Number(retryAfter) > 0;
    expect(refused.every(isPolite)).toBe(true);
    expect(refused.length).toBeLessThan(count);
    expect(Math.max(...searches)).toBeLessThanOrEqual(2);
    expect(Math.max(...gauges.running)).toBeLessThanOrEqual(2);
    expect(Math.max(...gauges.waiting)).toBeGreaterThan(0);
    // All at once, the first one would end with the last one.
    expect(Math.min(...ends)).toBeLessThan(tookMs / 4);
    // Without the limit a neighbour waits for all that came before it. This process has the clients
    // too, so that an export delays a neighbour by its own bytes here.
    expect(p95(times)).toBeLessThan(Math.max(3 * quiet, tookMs / 4));
  });
});
