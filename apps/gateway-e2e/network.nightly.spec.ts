import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { createTestDatabase, startNatsServer, until } from '@antiphon/testing';
import type { TestDatabase, TestNatsServer } from '@antiphon/testing';
import { CHAOS_CONFIG, auditUntilQuiet, readFacts } from '@antiphon/testing/faults';
import {
  ALL_COMPLETE,
  assertCommandsHold,
  checkCommands,
  checkFigure,
  createReconnectingClient,
  createSeededRandom,
  report,
  sendTurn,
} from '@antiphon/testing/load';
import type { SentTurn } from '@antiphon/testing/load';
import { createFaultyLink, natsName, postgresName } from '@antiphon/testing/network';
import type { FaultyLink } from '@antiphon/testing/network';
import { startStack, type TestStack } from '@antiphon/testing/stack';
import { letTimePass } from '@antiphon/testing/waits';

const CLIENTS = 6;
const CUT_MS = 20_000;
const RESUME_MS = 20_000;
const WAIT_MS = 30_000;
const ROUGH_MS = Number(process.env['ANTIPHON_NETWORK_ROUGH_MS'] ?? 120_000);
/** Runs each nth cut alone, for a quick run. */
const EVERY = Number(process.env['ANTIPHON_NETWORK_EVERY'] ?? 1);
/** Chance of each connection to be reset in a second, per mille. */
const RESETS_PER_MILLE = 5;
const SEED = 7;

let database: TestDatabase;
let nats: TestNatsServer;
let links: { readonly nats: FaultyLink; readonly postgres: FaultyLink };
let stack: TestStack;

const portOf = (url: string): number => Number(new URL(url).port);
const throughLink = (url: string, { port }: FaultyLink): string => {
  const through = new URL(url);
  through.port = String(port);
  return through.href;
};

beforeAll(async () => {
  [database, nats] = await Promise.all([createTestDatabase(), startNatsServer()]);
  const [toNats, toPostgres] = await Promise.all([
    createFaultyLink({ targetPort: portOf(nats.url), nameOf: natsName }),
    createFaultyLink({ targetPort: portOf(database.url), nameOf: postgresName }),
  ]);
  links = { nats: toNats, postgres: toPostgres };
  stack = await startStack({
    config: CHAOS_CONFIG,
    env: {
      ANTIPHON_NATS_URL: throughLink(nats.url, toNats),
      ANTIPHON_DATABASE_URL: throughLink(database.url, toPostgres),
      ANTIPHON_TEMPORAL_ADDRESS: process.env['ANTIPHON_TEST_TEMPORAL_ADDRESS'] ?? '',
    },
  });
}, 180_000);
afterAll(async () => {
  await stack.stop();
  await Promise.all([links.nats.close(), links.postgres.close()]);
  await Promise.all([nats.remove(), database.drop()]);
}, 120_000);

/** Six clients, each of which sends turn after turn, with a tool call in every third. */
class Conversations {
  readonly turns: (SentTurn & { readonly askedAt: number })[] = [];
  private isOver = false;
  private readonly clients: Promise<unknown>;

  constructor(private readonly name: string) {
    this.clients = Promise.all(Array.from({ length: CLIENTS }, (_, i) => this.runClient(`p${i}`)));
    this.clients.catch(() => undefined);
  }

  waitForFirstTurns(): Promise<void> {
    return until(() => this.turns.length >= CLIENTS, WAIT_MS);
  }

  /** Waits for the end of a turn that is sent from now on, and records how long that took. */
  async waitForProgress(what: string, withinMs: number): Promise<void> {
    const since = performance.now();
    await until(() => this.turns.some(({ askedAt }) => askedAt >= since), withinMs);
    const value = performance.now() - since;
    checkFigure({ what: `${what}: first turn afterwards`, value, unit: 'ms', atMost: withinMs });
  }

  stop(): Promise<unknown> {
    this.isOver = true;
    return this.clients;
  }

  private async runClient(client: string): Promise<void> {
    const peer = `${this.name}-${client}`;
    const gateway = createReconnectingClient(() => stack.wsUrl);
    for (let nth = 1; !this.isOver; nth++) {
      const key = `${peer}-${nth}`;
      const content = nth % 3 === 0 ? `/tool echo {"of":"${key}"}` : `tell me of ${key}`;
      const askedAt = performance.now();
      this.turns.push({ ...(await sendTurn(gateway, { key, peer, content })), askedAt });
    }
    await gateway.disconnect();
  }
}

let current: Conversations | undefined;
const startConversations = (name: string): Conversations => (current = new Conversations(name));

const healAll = (): void => {
  for (const link of Object.values(links)) {
    link.delay(null);
    link.heal();
  }
};
afterEach(async () => {
  healAll();
  await current?.stop().catch(() => undefined);
});

/**
 * Stops the clients, and compares what they saw with the log. A broken network may delay and refuse
 * turns; every accepted turn completes.
 */
const assertHolds = async (what: string, conversations: Conversations): Promise<void> => {
  await conversations.stop();
  const verdict = checkCommands(
    { turns: conversations.turns, runs: [] },
    await readFacts(stack),
    ALL_COMPLETE,
  );
  assertCommandsHold(what, verdict, ALL_COMPLETE);
  expect((await auditUntilQuiet(stack)).output).toContain('everything holds');
};

describe('a service that is cut off under load', () => {
  const services = ['agent', 'metering', 'memory', 'sandbox', 'gateway'];
  const edges = services
    .flatMap((service) => [[service, 'nats'] as const, [service, 'postgres'] as const])
    .filter((_, index) => index % EVERY === 0);

  it.each(edges)('loses and repeats no turn: %s without %s for 20 s', async (service, engine) => {
    const what = `${service} cut from ${engine}`;
    const conversations = startConversations(`${service}-${engine}`);
    await conversations.waitForFirstTurns();
    expect(links[engine].connections(service)).toBeGreaterThan(0);
    const before = conversations.turns.length;
    links[engine].cut(service);
    await letTimePass(CUT_MS);
    report(`${what}: ${conversations.turns.length - before} turns ended during the cut`);
    links[engine].heal();
    await conversations.waitForProgress(what, RESUME_MS);
    await assertHolds(what, conversations);
  });
});

describe('a slow network that resets connections', () => {
  it('completes all turns, with packets delayed by 100 to 300 ms', async () => {
    const random = createSeededRandom(SEED);
    const conversations = startConversations('rough');
    for (const link of Object.values(links)) link.delay({ ms: 200, jitterMs: 100 });
    const endsAt = performance.now() + ROUGH_MS;
    let resets = 0;
    while (performance.now() < endsAt) {
      await letTimePass(1_000);
      for (const link of Object.values(links))
        resets += link.reset(() => random.below(1_000) < RESETS_PER_MILLE);
    }
    healAll();
    report(`slow network: ${resets} connections reset, ${conversations.turns.length} turns ended`);
    await conversations.waitForProgress('slow network', RESUME_MS);
    await assertHolds('slow network', conversations);
  });
});

describe('a database that waits', () => {
  it('does not hold up other sessions while the head of one is locked for 30 s', async () => {
    const conversations = startConversations('held');
    await conversations.waitForFirstTurns();
    const holder = new pg.Client({ connectionString: database.url });
    await holder.connect();
    await holder.query('begin');
    await holder.query('select * from stream_heads where stream_id = $1 for update', [
      `session-${conversations.turns[0]?.sessionId ?? ''}`,
    ]);
    const before = conversations.turns.length;
    await letTimePass(WAIT_MS);
    const during = conversations.turns.length - before;
    await holder.query('rollback');
    await holder.end();
    checkFigure({ what: 'locked session: turns of the others', value: during, atLeast: CLIENTS - 1 });
    await conversations.waitForProgress('locked session', 5_000);
    await assertHolds('locked session', conversations);
  });

  it('delays or refuses turns, and loses none, while each statement takes 2 s more for 30 s', async () => {
    const conversations = startConversations('late');
    await conversations.waitForFirstTurns();
    links.postgres.delay({ ms: 1_000, jitterMs: 0 });
    await letTimePass(WAIT_MS);
    healAll();
    await conversations.waitForProgress('late database', 5_000);
    await assertHolds('late database', conversations);
  });
});
