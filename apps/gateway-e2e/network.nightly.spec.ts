import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { createTestDatabase, startNatsServer, until } from '@antiphon/testing';
import type { TestDatabase, TestNatsServer } from '@antiphon/testing';
import { CHAOS_CONFIG, auditUntilQuiet, readFacts } from '@antiphon/testing/faults';
import { checkCommands, openDoor, seeded, sendTurn } from '@antiphon/testing/load';
import type { TakenTurn } from '@antiphon/testing/load';
import { createFaultyLink, natsName, postgresName } from '@antiphon/testing/network';
import type { FaultyLink } from '@antiphon/testing/network';
import { startStack, type TestStack } from '@antiphon/testing/stack';

const TALKERS = 6;
const CUT_MS = 20_000;
const RESUME_MS = 20_000;
const WAIT_MS = 30_000;
const ROUGH_MS = 120_000;
/** Of each connection, that it is reset, in 1,000. */
const TORN_A_SECOND = 5;
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

/** People who each say one thing after another, with a tool call in every third. */
const startTalk = (name: string) => {
  const turns: (TakenTurn & { readonly askedAt: number })[] = [];
  let over = false;
  const talk = async (peer: string): Promise<void> => {
    const door = openDoor(() => stack.wsUrl);
    for (let nth = 1; !over; nth++) {
      const key = `${name}-${peer}-${nth}`;
      const content = nth % 3 === 0 ? `/tool echo {"of":"${key}"}` : `tell me of ${key}`;
      const askedAt = performance.now();
      turns.push({ ...(await sendTurn(door, { key, peer: `${name}-${peer}`, content })), askedAt });
    }
    await door.drop();
  };
  const talking = Promise.all(Array.from({ length: TALKERS }, (_, i) => talk(`p${i}`)));
  talking.catch(() => undefined);
  return {
    turns,
    severalEnd: () => until(() => turns.length >= TALKERS, WAIT_MS),
    /** In words, how long it takes from now until a turn that is asked for from now on has ended. */
    oneMoreEnds: async (withinMs: number): Promise<string> => {
      const since = performance.now();
      await until(() => turns.some(({ askedAt }) => askedAt >= since), withinMs);
      return `goes on after ${Math.round(performance.now() - since)} ms`;
    },
    stop: (): Promise<unknown> => {
      over = true;
      return talking;
    },
  };
};
type Talk = ReturnType<typeof startTalk>;
let current: Talk | undefined;
const begin = (name: string): Talk => (current = startTalk(name));

const calm = (): void => {
  for (const link of Object.values(links)) {
    link.delay(null);
    link.heal();
  }
};
afterEach(async () => {
  calm();
  await current?.stop().catch(() => undefined);
});

const say = (text: string): void => void process.stdout.write(`${text}\n`);

/** Ends the talk, and holds what everybody was told against the log, and the log against itself. */
const holds = async (talk: Talk): Promise<void> => {
  await talk.stop();
  const { first, lost, repeated, misread } = checkCommands(
    { turns: talk.turns, runs: [] },
    await readFacts(stack),
  );
  expect({ first, lost, repeated, misread }).toEqual({ first: null, lost: 0, repeated: 0, misread: 0 });
  expect((await auditUntilQuiet(stack)).said).toContain('everything holds');
};

describe('a service that is cut off, under load', () => {
  const services = ['agent', 'metering', 'memory', 'sandbox', 'gateway'];
  const edges = services.flatMap((service) => [[service, 'nats'] as const, [service, 'postgres'] as const]);

  it.each(edges)(
    '%s from %s for 20 s: nothing is lost or repeated, and turns go on',
    async (service, from) => {
      const talk = begin(`${service}-${from}`);
      await talk.severalEnd();
      expect(links[from].connections(service)).toBeGreaterThan(0);
      const before = talk.turns.length;
      links[from].cut(service);
      await sleep(CUT_MS);
      const meanwhile = talk.turns.length - before;
      links[from].heal();
      const went = await talk.oneMoreEnds(RESUME_MS);
      say(`${service} cut from ${from}: ${meanwhile} turns ended meanwhile, ${went}`);
      await holds(talk);
    },
  );
});

describe('a rough network between everything', () => {
  it('slows each packet by 100 to 300 ms and tears connections: all turns end', async () => {
    const chance = seeded(SEED);
    const talk = begin('rough');
    for (const link of Object.values(links)) link.delay({ ms: 200, jitterMs: 100 });
    const ends = performance.now() + ROUGH_MS;
    let torn = 0;
    while (performance.now() < ends) {
      await sleep(1_000);
      for (const link of Object.values(links)) torn += link.reset(() => chance.below(1_000) < TORN_A_SECOND);
    }
    calm();
    const went = await talk.oneMoreEnds(RESUME_MS);
    say(`rough network: ${torn} connections torn, ${talk.turns.length} turns ended, ${went}`);
    await holds(talk);
  });
});

describe('a database that waits', () => {
  it('holds the head of one session for 30 s: the others go on, within 5 s of its end at the latest', async () => {
    const talk = begin('held');
    await talk.severalEnd();
    const holder = new pg.Client({ connectionString: database.url });
    await holder.connect();
    await holder.query('begin');
    await holder.query('select * from stream_heads where stream_id = $1 for update', [
      `session-${talk.turns[0]?.sessionId ?? ''}`,
    ]);
    const before = talk.turns.length;
    await sleep(WAIT_MS);
    const meanwhile = talk.turns.length - before;
    await holder.query('rollback');
    await holder.end();
    say(`one session's head held: ${meanwhile} turns ended meanwhile, ${await talk.oneMoreEnds(5_000)}`);
    await holds(talk);
  });

  it('answers each statement 2 s late for 30 s: turns wait or are refused, and nothing is lost', async () => {
    const talk = begin('late');
    await talk.severalEnd();
    links.postgres.delay({ ms: 1_000, jitterMs: 0 });
    await sleep(WAIT_MS);
    calm();
    say(`a late database: ${await talk.oneMoreEnds(5_000)}`);
    await holds(talk);
  });
});
