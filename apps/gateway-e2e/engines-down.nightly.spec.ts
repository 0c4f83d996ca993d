import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import {
  createTestDatabase,
  startNatsServer,
  type TestDatabase,
  type TestNatsServer,
} from '@antiphon/testing';
import { auditUntilQuiet } from '@antiphon/testing/faults';
import {
  ALL_COMPLETE,
  assertCommandsHold,
  checkCommands,
  checkFigure,
  percentile,
  report,
  startLoad,
} from '@antiphon/testing/load';
import { startEngineProxy, type EngineProxy } from '@antiphon/testing/network';
import { startMockModel, type MockModel } from '@antiphon/testing/providers';
import { startStack, type TestStack } from '@antiphon/testing/stack';
import { letTimePass } from '@antiphon/testing/waits';
import { CANARY_KEY, waitForValue, readEvents, twoVendorConfig } from './stack-under-test.js';

jest.setTimeout(300_000);

const DOWN_MS = Number(process.env['ANTIPHON_DOWN_MS'] ?? 30_000);
/** Maximum time from the engine's return to the next end of a turn. */
const PROGRESS_MS = 10_000;

let mock: MockModel;
let database: TestDatabase;
let nats: TestNatsServer;
let postgres: EngineProxy;
let temporal: EngineProxy;
let stack: TestStack;

const addressOf = (url: string) => {
  const { hostname, port } = new URL(url.includes('://') ? url : `tcp://${url}`);
  return [hostname, Number(port)] as const;
};

beforeAll(async () => {
  mock = await startMockModel(async ({ user }) => {
    await letTimePass(50);
    return { text: ['You said: ', user] };
  });
  database = await createTestDatabase();
  nats = await startNatsServer();
  postgres = await startEngineProxy(...addressOf(database.url));
  temporal = await startEngineProxy(...addressOf(process.env['ANTIPHON_TEST_TEMPORAL_ADDRESS'] ?? ''));
  const databaseUrl = new URL(database.url);
  databaseUrl.port = String(postgres.port);
  stack = await startStack({
    config: twoVendorConfig(mock.url),
    env: {
      E2E_PROVIDER_KEY: CANARY_KEY,
      ANTIPHON_DATABASE_URL: databaseUrl.href,
      ANTIPHON_NATS_URL: nats.url,
      ANTIPHON_TEMPORAL_ADDRESS: `127.0.0.1:${temporal.port}`,
    },
    scale: { agent: 2, gateway: 2 },
  });
});
afterAll(async () => {
  await stack?.stop();
  await Promise.all([postgres?.close(), temporal?.close(), nats?.remove(), mock?.close()]);
  await database?.drop();
});

/** Counts the times in [from, end). */
const countWithin = (times: readonly number[], from: number, end: number): number =>
  times.filter((at) => at >= from && at < end).length;

/**
 * Runs a load, takes an engine away for a while and returns it. An outage may delay and refuse
 * turns; every accepted turn completes.
 */
const takeAway = async (engine: string, down: () => Promise<void>, up: () => Promise<void>) => {
  const load = startLoad({ wsUrls: stack.wsUrls(), sessions: 16, agent: 'claude', answerMs: 15_000 });
  await waitForValue('turns', async () => (load.done.length >= 50 ? true : undefined));
  const downAt = performance.now();
  await down();
  await letTimePass(DOWN_MS);
  const upAt = performance.now();
  await up();
  const first = await waitForValue(
    'a turn after the return',
    async () => load.done.find(({ doneAt }) => doneAt > upAt),
    60_000,
  );
  await letTimePass(5_000);
  await load.stop();
  const accepted = countWithin(load.accepted, downAt + 1_000, upAt);
  const refused = load.refused.filter(({ at }) => at > downAt && at < upAt).length;
  const waits = load.done.map(({ askedAt, doneAt }) => doneAt - askedAt);
  report(
    `${engine} down for ${DOWN_MS / 1_000} s: ${load.done.length} turns, ${accepted} accepted and ${refused} refused ` +
      `during the outage; the longest turn took ${Math.round(percentile(waits, 1))} ms`,
  );
  const verdict = checkCommands({ turns: load.done, runs: [] }, await readEvents(stack), ALL_COMPLETE);
  assertCommandsHold(`${engine} down`, verdict, ALL_COMPLETE);
  expect(load.accepted).toHaveLength(load.done.length);
  const what = `${engine} down: first turn after its return`;
  checkFigure({ what, value: first.doneAt - upAt, unit: 'ms', atMost: PROGRESS_MS });
  return { accepted, refused };
};

describe(`an engine that is gone for ${DOWN_MS / 1_000} s under load`, () => {
  it('lets turns continue when it is Temporal, which turns do not need', async () => {
    const { accepted } = await takeAway('Temporal', temporal.down, temporal.up);
    expect(accepted).toBeGreaterThan(100);
  });

  it('refuses new messages with a retryable error when it is NATS, and completes the accepted ones', async () => {
    const { accepted, refused } = await takeAway('NATS', nats.kill, nats.start);
    expect([accepted, refused > 0]).toEqual([0, true]);
  });

  it('accepts nothing that is not durable when it is PostgreSQL, and completes the accepted turns', async () => {
    const { accepted, refused } = await takeAway('PostgreSQL', postgres.down, postgres.up);
    expect([accepted, refused > 0]).toEqual([0, true]);
  });

  it('leaves a log that passes the audit', async () =>
    expect((await auditUntilQuiet(stack)).output).toContain('everything holds'));
});
