import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { IssuedKey, IssuedWorkspace } from '@antiphon/contracts/keys';
import { createPool } from '@antiphon/database';
import { createPostgresEventStore } from '@antiphon/event-store';
import { checkFigure, growLog, percentile, report } from '@antiphon/testing/load';
import type { TestStack } from '@antiphon/testing/stack';
import { letTimePass } from '@antiphon/testing/waits';
import { type HostileRequest, startHostileClient } from './hostile-client.js';
import { createApiCaller, scriptedConfig, startQuickStack, waitForValue } from './stack-under-test.js';

jest.setTimeout(1_800_000);

const TOKEN = 'the-token-of-heavy-reads-has-over-32-characters';
const EVENTS = Number(process.env['ANTIPHON_HEAVY_EVENTS'] ?? 127_000);
/** Pairs of a quiet and a loaded measurement. The machine may change from one pair to the next. */
const BLOCKS = Number(process.env['ANTIPHON_HEAVY_BLOCKS'] ?? 5);
const HEAVY = 200;
/** Rounds of the neighbour in a block, at least. */
const ROUNDS = 150;
const PAUSE_MS = 5;
const MOST_TIMES = 3;
/** A heavy request is served, or refused with the time to wait. */
const EXPECTED = new Set(['200', '429', '503']);

const CONFIG = scriptedConfig(
  `
[[agents]]
id = "main"
workspace = "*"
provider = "scripted"
`,
  `token = "${TOKEN}"

[gateway.limits]
requests_per_second = 0`,
);

let stack: TestStack;
let sessionId: string;
let viewer: string;
let neighbour: string;
const call = createApiCaller(() => stack.gatewayUrl);

const createWorkspace = async (id: string): Promise<string> => {
  const { body } = await call<IssuedWorkspace>(TOKEN, 'POST', '/workspaces', { id, name: id });
  return body.key.token ?? '';
};

beforeAll(async () => {
  stack = await startQuickStack(CONFIG);
  const noisy = await createWorkspace('noisy');
  neighbour = await createWorkspace('quiet');
  const issued = await call<IssuedKey>(noisy, 'POST', '/keys', { name: 'viewer', role: 'viewer' });
  viewer = issued.body.token ?? '';
  const pool = createPool({
    url: stack.databaseUrl,
    role: 'antiphon_agent',
    applicationName: 'spec',
    max: 8,
  });
  const log = createPostgresEventStore(pool);
  sessionId = await growLog(log, { turns: 1_000, events: EVENTS, workspace: 'noisy' });
  await log.close();
  await pool.query('vacuum analyze events').catch(() => undefined);
  await pool.end();
  const lags = async (): Promise<true | undefined> => {
    const { body } = await call<{ projections: { lag: number }[] }>(TOKEN, 'GET', '/projections');
    return body.projections.length > 0 && body.projections.every(({ lag }) => lag === 0) ? true : undefined;
  };
  await waitForValue('projections at the head', lags, 600_000);
});
afterAll(() => stack?.stop());

/** Reads small things of another workspace, by the gateway and by the agent. Returns the times, ms. */
const timesOfNeighbour = async (hasEnded: (rounds: number) => boolean): Promise<number[]> => {
  const times: number[] = [];
  while (!hasEnded(times.length)) {
    const from = performance.now();
    const keys = await call(neighbour, 'GET', '/keys');
    const sessions = await call(neighbour, 'GET', '/sessions?limit=5');
    const turn = await call(neighbour, 'GET', `/turns/${sessionId}`);
    times.push(performance.now() - from);
    expect([keys.status, sessions.status, turn.status]).toEqual([200, 200, 404]);
    await letTimePass(PAUSE_MS);
  }
  return times;
};

const median = (values: readonly number[]): number => percentile(values, 0.5);

describe('200 heavy reads of one viewer at once', () => {
  const head = '/api/v1';
  // @shows review2-7-heavy-reads-in-five-processes
  it.each<[string, (index: number) => string]>([
    ['searches of a text', () => `${head}/events?text=not-there`],
    ['exports', () => `${head}/sessions/${sessionId}/export`],
    ['reads of the past', (index) => `${head}/sessions?limit=5&at=${1 + ((index * 7_919) % EVENTS)}`],
  ])(`as %s slow another workspace to ${MOST_TIMES} times at most`, async (what, pathOf) => {
    const requests = Array.from({ length: HEAVY }, (_, index): HostileRequest => ({ path: pathOf(index) }));
    const measureQuiet = () => timesOfNeighbour((rounds) => rounds >= ROUNDS);
    await measureQuiet();
    const [quiet, loaded]: [number[], number[]] = [[], []];
    for (let block = 0; block < BLOCKS; block++) {
      quiet.push(percentile(await measureQuiet(), 0.95));
      const times: number[] = [];
      while (times.length < ROUNDS) {
        const client = startHostileClient({
          url: stack.gatewayUrl,
          token: viewer,
          requests,
          parallel: HEAVY,
        });
        times.push(...(await timesOfNeighbour(() => client.hasEnded())));
        const statuses = await client.statuses;
        report(`${what}: ${JSON.stringify(statuses)}`);
        expect(statuses['200']).toBeGreaterThan(0);
        expect(Object.keys(statuses).filter((status) => !EXPECTED.has(status))).toEqual([]);
      }
      loaded.push(percentile(times, 0.95));
      const [before, after] = [quiet.at(-1) ?? 0, loaded.at(-1) ?? 0].map((ms) => ms.toFixed(1));
      report(`${what}: p95 ${before} ms, then ${after} ms in ${times.length} rounds`);
    }
    const value = median(loaded) / median(quiet);
    checkFigure({ what: `p95 of a neighbour of ${HEAVY} ${what}`, value, unit: '×', atMost: MOST_TIMES });
  });
});
