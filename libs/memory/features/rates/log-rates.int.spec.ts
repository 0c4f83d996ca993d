import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { RATE_SPANS, readLogRates, type LogRates, type RateSpan } from '@antiphon/contracts/log';
import { acrossWorkspaces, createPool } from '@antiphon/database';
import {
  compareProjection,
  createPostgresEventStore,
  rebuildProjection,
  runProjection,
} from '@antiphon/event-store';
import type { EventStore, EventStorePg, NewEvent } from '@antiphon/event-store';
import type { JsonObject } from '@antiphon/kernel';
import { silentLogger } from '@antiphon/observability';
import { createTestDatabase, type TestDatabase } from '@antiphon/testing';
import type pg from 'pg';
import { FollowLogRates } from './follow-log-rates.js';
import { logRates } from './log-rates.projection.js';
import { ReadLogRates } from './read-log-rates.handler.js';

jest.setTimeout(120_000);

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

type Store = EventStore & EventStorePg;
let database: TestDatabase;
let admin: pg.Pool;
let pools: readonly pg.Pool[];
let pool: pg.Pool;
let stores: Readonly<Record<'agent' | 'metering', Store>>;
let rates: FollowLogRates;
let read: ReadLogRates;
/** Time of the newest event of the first test. */
let time = Date.now() - 20 * 24 * HOUR_MS;

beforeAll(async () => {
  database = await createTestDatabase();
  const open = (role: 'agent' | 'metering' | 'memory') =>
    createPool({ url: database.urlFor(role), applicationName: `spec-${role}`, max: 3 });
  const [agent, metering, memory] = [open('agent'), open('metering'), open('memory')];
  admin = createPool({ url: database.url, applicationName: 'spec', max: 2 });
  pools = [agent, metering, memory, admin];
  pool = memory;
  stores = { agent: createPostgresEventStore(agent), metering: createPostgresEventStore(metering) };
  rates = new FollowLogRates({ pool, logger: silentLogger });
  read = new ReadLogRates(pool, rates);
}, 60_000);
afterAll(async () => {
  await Promise.all(Object.values(stores).map((store) => store.close()));
  await Promise.all(pools.map((one) => one.end()));
  await database.drop();
});

/** Events of each kind, with the service and the category that they belong to. */
const KINDS = [
  ...[['session', 'TurnRequested'] as const, ['session', 'TurnCompleted'] as const],
  ...[['session', 'TurnFailed'] as const, ['session', 'TurnCancelled'] as const],
  ...[['session', 'ModelCallStarted'] as const, ['session', 'ToolCallRequested'] as const],
  ...[['session', 'TurnBlocked'] as const, ['task', 'TaskQueued'] as const, ['task', 'TaskEnded'] as const],
  ...[['run', 'RunFailed'] as const, ['run', 'TaskFailed'] as const, ['agent', 'AgentFailed'] as const],
  ...[['budget', 'BudgetSettled'] as const, ['budget', 'BudgetExpired'] as const],
] as const;

interface Drawn {
  readonly workspace: string;
  readonly kind: (typeof KINDS)[number];
  /** Time since the event before, ms. */
  readonly after: number;
  readonly amount: number;
}
const TURN: Omit<Drawn, 'workspace'> = { kind: KINDS[0], after: 0, amount: 0 };
const drawnEvents = fc.array(
  fc.record({
    workspace: fc.constantFrom('default', 'acme'),
    kind: fc.constantFrom(...KINDS),
    after: fc.oneof(fc.nat(20_000), fc.nat(40 * MINUTE_MS)),
    amount: fc.nat(1_000_000),
  }),
  { minLength: 1, maxLength: 60 },
);

const dataOf = ({ kind: [, type], amount }: Drawn): JsonObject => {
  if (type === 'TaskEnded') return { status: amount % 2 === 0 ? 'failed' : 'completed' };
  if (type === 'BudgetSettled')
    return { inputTokens: amount, outputTokens: amount % 7, microUsd: 3 * amount };
  return type === 'BudgetExpired' ? { tokens: 1, microUsd: amount } : {};
};

const append = async (drawn: Drawn): Promise<number> => {
  const [category, type] = drawn.kind;
  const event: NewEvent = {
    ...{ eventId: randomUUID(), type, schemaVersion: 1, data: dataOf(drawn) },
    metadata: { correlationId: 'spec', service: 'spec' },
  };
  const streams = [
    { streamId: `${category}-${randomUUID()}`, expectedVersion: 'any' as const, events: [event] },
  ];
  const store = category === 'budget' ? stores.metering : stores.agent;
  return (await store.append({ workspace: drawn.workspace, streams })).lastPosition;
};

/** Gives the events of some positions other times, as only the owner of the database can. */
const setTimes = async (times: ReadonlyMap<number, number>): Promise<void> => {
  const client = await admin.connect();
  try {
    await client.query(`set session_replication_role = 'replica'`);
    await client.query(
      `update events e set recorded_at = to_timestamp(n.at / 1000.0)
        from unnest($1::bigint[], $2::float8[]) n (position, at) where e.position = n.position`,
      [[...times.keys()], [...times.values()]],
    );
  } finally {
    await client.query('reset session_replication_role');
    client.release();
  }
};

const SUMS = `count(*)::int as events,
    count(*) filter (where type = 'TurnRequested')::int as turns,
    count(*) filter (where type in ('TurnCompleted', 'TurnFailed', 'TurnCancelled'))::int as "endedTurns",
    count(*) filter (where type = 'TaskQueued')::int as tasks,
    count(*) filter (where type = 'TaskEnded')::int as "endedTasks",
    count(*) filter (where type in ('TurnFailed', 'RunFailed', 'TaskFailed', 'AgentFailed')
      or (type = 'TaskEnded' and data ->> 'status' = 'failed'))::int as failures,
    count(*) filter (where type = 'ModelCallStarted')::int as "modelCalls",
    count(*) filter (where type = 'ToolCallRequested')::int as "toolCalls",
    coalesce(sum((data ->> 'inputTokens')::bigint), 0)::float8 as "inputTokens",
    coalesce(sum((data ->> 'outputTokens')::bigint), 0)::float8 as "outputTokens",
    coalesce(sum((data ->> 'microUsd')::bigint), 0)::float8 as "microUsd"`;
const OPEN_TURNS = `count(*) filter (where type = 'TurnRequested')
    - count(*) filter (where type in ('TurnCompleted', 'TurnFailed', 'TurnCancelled'))`;
const OPEN_TASKS = `count(*) filter (where type = 'TaskQueued') - count(*) filter (where type = 'TaskEnded')`;
/** Counts and levels of the log itself in each step, by a scan. */
const SCAN_SQL = `select n.*, (select (${OPEN_TURNS})::int from events l where l.workspace = n.workspace
      and l.recorded_at < n.at + make_interval(secs => $1) and l.recorded_at < $2) as "openTurns",
    (select (${OPEN_TASKS})::int from events l where l.workspace = n.workspace
      and l.recorded_at < n.at + make_interval(secs => $1) and l.recorded_at < $2) as "openTasks"
  from (select workspace, to_timestamp(floor(extract(epoch from recorded_at) / $1) * $1) as at, ${SUMS}
    from events where recorded_at < $2 and recorded_at >= $3 and ($4::text is null or workspace = $4)
    group by 1, 2) n order by workspace, at`;
const scan = async (step: number, until: Date | 'infinity' = 'infinity', since = new Date(0), of?: string) =>
  (await admin.query<{ workspace: string; at: Date }>(SCAN_SQL, [step, until, since, of ?? null])).rows;

const STORED_SQL = `select workspace, at, events::int, turns::int, ended_turns::int as "endedTurns", tasks::int,
    ended_tasks::int as "endedTasks", failures::int, model_calls::int as "modelCalls", tool_calls::int as "toolCalls",
    input_tokens::float8 as "inputTokens", output_tokens::float8 as "outputTokens", micro_usd::float8 as "microUsd",
    open_turns::int as "openTurns", open_tasks::int as "openTasks"
  from log_rates where step = $1 order by 1, 2`;
const stored = async (step: number) => (await acrossWorkspaces(pool).query(STORED_SQL, [step])).rows;

const project = async (batchSize: number): Promise<void> => {
  const projection = runProjection({ ...logRates, pool, logger: silentLogger, batchSize });
  await projection.waitForPosition(await stores.agent.headPosition());
  await projection.stop();
};

/** Appends events at times. Returns their positions and times, the oldest first. */
const appendAt = async (drawn: readonly (Drawn & { readonly at: number })[]) => {
  const times = new Map<number, number>();
  for (const one of drawn) times.set(await append(one), one.at);
  await setTimes(times);
  return [...times].map(([position, at]) => ({ position, at }));
};

const readRates = async (span: RateSpan, workspace: string, at?: number): Promise<LogRates> =>
  readLogRates.reply.parse(await read.handle({ workspace, span, at }));

/** Returns the counts of the log in the steps of a reply, for a workspace and up to a time. */
const expected = async ({ step, since }: LogRates, workspace: string, until?: Date) =>
  (await scan(step, until, new Date(since), workspace)).map(({ workspace: _, at, ...counts }) => ({
    at: at.toISOString(),
    ...counts,
  }));

describe('the projection of rates', () => {
  it('equals the log in every minute and hour, with its levels, for any batches; and a rebuild', () =>
    fc.assert(
      fc.asyncProperty(drawnEvents, fc.integer({ min: 1, max: 20 }), async (drawn, size) => {
        await appendAt(drawn.map((one) => ({ ...one, at: (time += one.after) })));
        await project(size);
        const rows = { minutes: await stored(60), hours: await stored(3_600), all: await stored(0) };
        expect(rows.minutes).toEqual(await scan(60));
        expect(rows.hours).toEqual(await scan(3_600));
        // A step that is longer than the log.
        expect(rows.all).toEqual(await scan(1e10));
        expect(await rebuildProjection(admin, logRates)).toMatchObject({ changed: 0 });
        expect(await stored(60)).toEqual(rows.minutes);
      }),
      { numRuns: 6 },
    ));

  it('is repaired by a rebuild, in the rows that a read may use', async () => {
    await appendAt([{ ...TURN, workspace: 'default', at: Date.now() - HOUR_MS }]);
    await project(500);
    const before = await stored(3_600);
    await acrossWorkspaces(pool).query('update log_rates set events = events + 1 where step = 3600');
    const { changed } = await rebuildProjection(admin, logRates);
    expect(changed).toBe(before.length);
    expect(await stored(3_600)).toEqual(before);
    expect(await compareProjection(admin, logRates)).toMatchObject({ differing: 0 });
  });
});

describe('a read of rates', () => {
  const workspace = 'read';
  const now = Date.now();
  const AGES = [
    ...[26 * HOUR_MS, 25.5 * HOUR_MS, 23 * HOUR_MS, 22.9 * HOUR_MS, 3 * HOUR_MS, 61 * MINUTE_MS],
    ...[50 * MINUTE_MS, 49.9 * MINUTE_MS, 12 * MINUTE_MS, 5 * MINUTE_MS, 5 * MINUTE_MS, 2 * MINUTE_MS],
  ];
  let placed: Awaited<ReturnType<typeof appendAt>>;

  beforeAll(async () => {
    const kinds = [KINDS[0], KINDS[1], KINDS[0], KINDS[7], KINDS[0], KINDS[12], KINDS[2], KINDS[8]];
    placed = await appendAt(
      AGES.map((age, index) => ({
        ...{ workspace, kind: kinds[index % kinds.length] ?? KINDS[0], after: 0, amount: 1_000 + index },
        at: now - age,
      })),
    );
    await project(500);
  });

  it.each(['1h', '24h', '30d'] as const)('returns the counts of the log over %s', async (span) => {
    const rates = await readRates(span, workspace);
    expect(rates.step).toBe(RATE_SPANS[span].step);
    expect(rates.buckets).toEqual(await expected(rates, workspace));
    expect(rates.buckets.length).toBeGreaterThan(1);
    const [before] = await scan(1e10, new Date(rates.since), new Date(0), workspace);
    const { openTurns, openTasks } = { openTurns: 0, openTasks: 0, ...before };
    expect(rates.openBefore).toEqual({ turns: openTurns, tasks: openTasks });
    expect((await readRates(span, 'empty')).buckets).toEqual([]);
  });

  it.each(['1h', '24h', '30d'] as const)('returns them over %s as of each position', async (span) => {
    for (const { position, at } of placed) {
      const rates = await readRates(span, workspace, position);
      expect([rates.position, rates.until]).toEqual([position, new Date(at).toISOString()]);
      // A minute counts once it had ended.
      const until = new Date(Math.floor(at / MINUTE_MS) * MINUTE_MS);
      expect(rates.buckets).toEqual(await expected(rates, workspace, until));
    }
    await expect(readRates(span, workspace, 1_000_000)).rejects.toMatchObject({ code: 'LOG.POSITION_AHEAD' });
  });

  it('has no counts before the first event', async () =>
    expect(await readRates('24h', workspace, 0)).toMatchObject({
      ...{ buckets: [], openBefore: { turns: 0, tasks: 0 }, position: 0 },
    }));

  it('deletes minutes after a day and hours after 30 days, and keeps what reads use', async () => {
    const keptBefore = [await readRates('1h', workspace), await readRates('24h', workspace)];
    const hours = await readRates('30d', workspace);
    await appendAt([{ ...TURN, workspace: 'old', at: now - 40 * 24 * HOUR_MS }]);
    await project(500);
    expect(await rates.deleteOld()).toBeGreaterThan(0);
    const { rows } = await acrossWorkspaces(pool).query<{ step: number; oldest: Date }>(
      'select step, min(at) as oldest from log_rates where step > 0 group by step order by step',
    );
    expect(rows.map(({ step }) => step)).toEqual([60, 3_600]);
    const ages = rows.map(({ oldest }) => (now - oldest.getTime()) / HOUR_MS);
    expect([ages[0]! < 25.1, ages[1]! < 31 * 24 + 1]).toEqual([true, true]);
    const buckets = ({ buckets }: LogRates) => buckets;
    const keptAfter = [await readRates('1h', workspace), await readRates('24h', workspace)];
    expect(keptAfter.map(buckets)).toEqual(keptBefore.map(buckets));
    expect((await readRates('30d', workspace)).buckets).toEqual(hours.buckets);
    expect(await compareProjection(admin, logRates)).toMatchObject({ differing: 0 });
    // Of a past without minutes, an hour counts once it had ended.
    const { position, at } = placed[1] ?? { position: 0, at: 0 };
    const past = await readRates('24h', workspace, position);
    const until = new Date(Math.floor(at / HOUR_MS) * HOUR_MS);
    expect([past.step, past.buckets]).toEqual([3_600, await expected(past, workspace, until)]);
  });

  it('has an event at once while the projection follows the log', async () => {
    const stopping = new AbortController();
    const following = rates.follow(stopping.signal);
    const before = (await readRates('1h', 'live')).buckets;
    for (let n = 0; n < 3; n++) await append({ ...TURN, workspace: 'live' });
    const { buckets, openBefore } = await readRates('1h', 'live');
    stopping.abort();
    await following;
    expect([before, openBefore.turns, buckets.reduce((sum, { turns }) => sum + turns, 0)]).toEqual([
      [],
      0,
      3,
    ]);
    expect(buckets.at(-1)?.openTurns).toBe(3);
  });
});
