import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  createTestDatabase,
  startNatsServer,
  type TestDatabase,
  type TestNatsServer,
} from '@antiphon/testing';
import { auditUntilQuiet, startEngineProxy, type EngineProxy } from '@antiphon/testing/faults';
import { checkCommands, percentile, startLoad, type Load } from '@antiphon/testing/load';
import { startMockModel, type MockModel } from '@antiphon/testing/providers';
import { startStack, type TestStack } from '@antiphon/testing/stack';
import { CANARY_KEY, eventually, readEvents, twoVendors } from './stack-under-test.js';

jest.setTimeout(300_000);

const DOWN_MS = 30_000;
/** From an engine's return until a turn that was begun after it has ended. */
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
    await sleep(50);
    return { text: ['You said: ', user] };
  });
  database = await createTestDatabase();
  nats = await startNatsServer();
  postgres = await startEngineProxy(...addressOf(database.url));
  temporal = await startEngineProxy(...addressOf(process.env['ANTIPHON_TEST_TEMPORAL_ADDRESS'] ?? ''));
  const databaseUrl = new URL(database.url);
  databaseUrl.port = String(postgres.port);
  stack = await startStack({
    config: twoVendors(mock.url),
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

const report = (figures: string): void => void process.stdout.write(`${figures}\n`);
const between = (times: readonly number[], from: number, until: number): number =>
  times.filter((at) => at >= from && at < until).length;

/** Talks, takes an engine away for 30 s, gives it back, and answers what clients have seen of it. */
const through = async (what: string, down: () => Promise<void>, up: () => Promise<void>) => {
  const wsUrls = stack.stackJson().urls.gateways.map((url) => `${url.replace(/^http/, 'ws')}/ws`);
  const load: Load = startLoad({ wsUrls, sessions: 16, agent: 'claude', answerMs: 15_000 });
  await eventually('turns', async () => (load.done.length >= 50 ? true : undefined));
  const wentAt = performance.now();
  await down();
  await sleep(DOWN_MS);
  const cameAt = performance.now();
  await up();
  const first = await eventually(
    'a turn after the return',
    async () => load.done.find(({ doneAt }) => doneAt > cameAt),
    60_000,
  );
  await sleep(5_000);
  await load.stop();
  const verdict = checkCommands({ turns: load.done, runs: [] }, await readEvents(stack));
  const seen = {
    progressMs: Math.round(first.doneAt - cameAt),
    acceptedMeanwhile: between(load.accepted, wentAt + 1_000, cameAt),
    refusedMeanwhile: load.refused.filter(({ at }) => at > wentAt && at < cameAt).length,
    verdict,
  };
  const waits = load.done.map(({ askedAt, doneAt }) => doneAt - askedAt);
  report(
    `${what} down for ${DOWN_MS / 1_000} s: ${load.done.length} turns, ${seen.acceptedMeanwhile} accepted and ` +
      `${load.refused.length} refused meanwhile; the first turn ended ${seen.progressMs} ms after the return; ` +
      `longest ${Math.round(percentile(waits, 1))} ms`,
  );
  expect(verdict).toMatchObject({ lost: 0, repeated: 0, misread: 0, first: null });
  expect(load.accepted).toHaveLength(load.done.length);
  expect(seen.progressMs).toBeLessThan(PROGRESS_MS);
  return seen;
};

describe('an engine that is gone for 30 s under load', () => {
  it('Temporal: turns, which do not wait for it, go on', async () => {
    const { acceptedMeanwhile } = await through('Temporal', temporal.down, temporal.up);
    expect(acceptedMeanwhile).toBeGreaterThan(100);
  });

  it('NATS: new messages are refused for the time being, accepted ones end', async () => {
    const { acceptedMeanwhile, refusedMeanwhile } = await through('NATS', nats.kill, nats.start);
    expect([acceptedMeanwhile, refusedMeanwhile > 0]).toEqual([0, true]);
  });

  it('PostgreSQL: nothing is accepted that is not durable, accepted turns end', async () => {
    const { acceptedMeanwhile, refusedMeanwhile } = await through('PostgreSQL', postgres.down, postgres.up);
    expect([acceptedMeanwhile, refusedMeanwhile > 0]).toEqual([0, true]);
  });

  it('leaves a log that the audit accepts', async () => {
    expect((await auditUntilQuiet(stack)).said).toContain('everything holds');
  });
});
