import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { createPool } from '@antiphon/database';
import {
  AggregateStore,
  claimOf,
  createLeaseStore,
  createPostgresEventStore,
  type AggregateOptions,
  type CacheOptions,
  type EventStore,
  type StateAt,
} from '@antiphon/event-store';
import { createTestDatabase, type TestDatabase } from '@antiphon/testing';

interface Added {
  readonly type: 'Added';
  readonly n: number;
}
interface Sum {
  readonly sum: number;
  readonly numbers: readonly number[];
}
type Options = Partial<AggregateOptions<Sum, Added>>;

const WORKSPACE = 'w';
const added = (n: number): Added => ({ type: 'Added', n });

let database: TestDatabase;
let pools: ReturnType<typeof createPool>[];
let stores: (EventStore & { close(): Promise<void> })[];

beforeAll(async () => {
  database = await createTestDatabase();
  // Two processes of the agent service.
  pools = [1, 2].map((n) =>
    createPool({ url: database.urlFor('agent'), applicationName: `spec-agent-${n}`, max: 4 }),
  );
  stores = pools.map((pool) => createPostgresEventStore(pool));
});

afterAll(async () => {
  await Promise.all(stores.map((store) => store.close()));
  await Promise.all(pools.map((pool) => pool.end()));
  await database.drop();
});

/** Creates the store of sums of a process. */
const sums = (process: 0 | 1, options: Options = {}): AggregateStore<Sum, Added> => {
  const store = stores[process];
  if (!store) throw new Error('no such process');
  return new AggregateStore<Sum, Added>({
    store,
    streamOf: (_workspace, id) => `plan-${id}`,
    parse: ({ data }) => added(Number(data['n'])),
    toNewEvent: ({ type, n }) => ({
      ...{ eventId: randomUUID(), type, schemaVersion: 1, data: { n } },
      metadata: { correlationId: 'c', service: 'agent' },
    }),
    decider: {
      initialState: () => ({ sum: 0, numbers: [] }),
      evolve: ({ sum, numbers }, { n }) => ({ sum: sum + n, numbers: [...numbers, n] }),
    },
    ...options,
  });
};

const add = (store: AggregateStore<Sum, Added>, id: string, n: number) =>
  store.commit(WORKSPACE, id, () => ({ events: [added(n)] }));

/** Snapshots in the process, which count their uses. */
const createSnapshots = () => {
  const stored = new Map<string, StateAt<Sum>>();
  const reads: number[] = [];
  const snapshots: CacheOptions<Sum>['snapshots'] = {
    every: 3,
    read: (_workspace, id) => {
      reads.push(stored.get(id)?.version ?? 0);
      return Promise.resolve(stored.get(id) ?? null);
    },
    write: (_workspace, id, folded) => Promise.resolve(void stored.set(id, folded)),
  };
  return { stored, reads, snapshots };
};

describe('AggregateStore: conflicts', () => {
  it('decides again on the newest state after a conflict', async () => {
    const id = randomUUID();
    const seen: number[] = [];
    const committed = await sums(0).commit(WORKSPACE, id, async ({ state }) => {
      seen.push(state.sum);
      if (seen.length === 1) await add(sums(1), id, 5);
      return { events: [added(state.sum + 1)] };
    });
    expect(seen).toEqual([0, 5]);
    expect(committed.state).toEqual({ sum: 11, numbers: [5, 6] });
    expect(committed.version).toBe(2);
  });

  it('loses no change of twenty concurrent ones of two processes', async () => {
    const id = randomUUID();
    const both = [sums(0), sums(1, { cache: { maxStreams: 10 } })];
    await Promise.all(both.flatMap((store) => Array.from({ length: 10 }, () => add(store, id, 1))));
    expect(await sums(0).read(WORKSPACE, id)).toMatchObject({ state: { sum: 20 }, version: 20 });
  });

  it('gives up after the last round with the conflict', async () => {
    const id = randomUUID();
    const store = sums(0, { maxRounds: 2 });
    const losing = store.commit(WORKSPACE, id, async () => {
      await add(sums(1), id, 1);
      return { events: [added(9)] };
    });
    await expect(losing).rejects.toMatchObject({ code: 'LOG.VERSION_CONFLICT' });
    expect((await store.read(WORKSPACE, id)).state.numbers).toEqual([1, 1]);
  });

  it('throws a conflict of another stream if only its own are retried', async () => {
    const [id, other] = [randomUUID(), randomUUID()];
    await add(sums(1), other, 1);
    const isStale: Options['isStale'] = (error, streamId) =>
      (error as { data?: { streamId?: string } }).data?.streamId === streamId;
    const store = sums(0, { isStale });
    const also = [store.appendOf(WORKSPACE, other, 0, [added(2)])];
    const commit = store.commit(WORKSPACE, id, () => ({ events: [added(1)], also }));
    await expect(commit).rejects.toMatchObject({ data: { streamId: `plan-${other}` } });
    expect((await store.read(WORKSPACE, id)).version).toBe(0);
  });
});

describe('AggregateStore: idempotency keys', () => {
  const create = (key: string, body: object, response: object) =>
    sums(0).commit(WORKSPACE, randomUUID(), () => ({
      events: [added(1)],
      idempotency: claimOf('caller/plan.create', key, body, response),
    }));

  it('gives a repeated request the first response, and appends nothing', async () => {
    const key = randomUUID();
    const first = await create(key, { name: 'a', n: 1 }, { planId: 'first' });
    const again = await create(key, { n: 1, name: 'a', absent: undefined }, { planId: 'second' });
    expect([first.joined, first.isAppended]).toEqual([undefined, true]);
    expect([again.joined, again.isAppended]).toEqual([{ planId: 'first' }, false]);
  });

  it('refuses a key with another body', async () => {
    const key = randomUUID();
    await create(key, { name: 'a' }, { planId: 'first' });
    await expect(create(key, { name: 'b' }, {})).rejects.toMatchObject({ code: 'LOG.IDEMPOTENCY_CONFLICT' });
  });

  it('claims nothing without a key', () => expect(claimOf('s', undefined, {}, {})).toBeUndefined());

  it('keeps the fold of the log after a joined request, with a cache', async () => {
    const [id, key] = [randomUUID(), randomUUID()];
    const store = sums(0, { cache: { maxStreams: 10, decidesOnKept: true } });
    const commit = () =>
      store.commit(WORKSPACE, id, () => ({
        events: [added(7)],
        idempotency: claimOf('caller/plan.change', key, {}, {}),
      }));
    await commit();
    expect(await commit()).toMatchObject({ state: { sum: 7 }, version: 1, isAppended: false });
    expect(store.kept(WORKSPACE, id)).toEqual({ sum: 7, numbers: [7] });
  });
});

describe('AggregateStore: fences', () => {
  it('refuses the change of a process that lost its lease', async () => {
    const [pool] = pools;
    if (!pool) throw new Error('no pool');
    const [id, name] = [randomUUID(), `session/${randomUUID()}`];
    const leases = createLeaseStore(pool);
    const { lease } = (await leases.acquire(WORKSPACE, name, 'a', 60_000)) as { lease: { epoch: number } };
    const fenced = (epoch: number) =>
      sums(0).commit(WORKSPACE, id, () => ({ events: [added(1)], fence: { lease: name, epoch } }));
    await fenced(lease.epoch);
    await leases.releaseOwner('a');
    await leases.acquire(WORKSPACE, name, 'b', 60_000);
    await expect(fenced(lease.epoch)).rejects.toMatchObject({ code: 'LOG.FENCED' });
    expect((await sums(0).read(WORKSPACE, id)).version).toBe(1);
  });
});

describe('AggregateStore: cache', () => {
  it('equals the fold of the log after any changes of two processes', async () => {
    const change = fc.record({
      process: fc.constantFrom(0 as const, 1 as const),
      numbers: fc.array(fc.integer({ min: -9, max: 9 }), { maxLength: 4 }),
      isRead: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(change, { maxLength: 12 }), fc.boolean(), async (changes, decidesOnKept) => {
        const id = randomUUID();
        const { stored, snapshots } = createSnapshots();
        const cache = { maxStreams: 10, decidesOnKept, snapshots };
        const both = [sums(0, { cache }), sums(1, { cache })] as const;
        for (const { process, numbers, isRead } of changes) {
          const events = numbers.map(added);
          if (isRead) await both[process].read(WORKSPACE, id);
          const { state } = await both[process].commit(WORKSPACE, id, () => ({ events }));
          if (events.length > 0) expect(both[process].kept(WORKSPACE, id) ?? state).toEqual(state);
        }
        const whole = await sums(0).read(WORKSPACE, id);
        for (const store of [...both, sums(0, { cache })])
          expect(await store.read(WORKSPACE, id)).toMatchObject({
            state: whole.state,
            version: whole.version,
          });
        const { version = 0, state } = stored.get(id) ?? {};
        if (state) expect(state.numbers).toEqual(whole.state.numbers.slice(0, version));
      }),
      { numRuns: 25 },
    );
  }, 60_000);

  it('begins a fold with its snapshot, and reads only the events after it', async () => {
    const id = randomUUID();
    const { reads, snapshots } = createSnapshots();
    const cache = { maxStreams: 10, snapshots };
    const writer = sums(0, { cache });
    for (const n of [1, 2, 3, 4]) await add(writer, id, n);
    await writer.read(WORKSPACE, id);
    const parsed: number[] = [];
    const parse: Options['parse'] = ({ data }) => {
      parsed.push(Number(data['n']));
      return added(Number(data['n']));
    };
    const reader = sums(1, { cache, parse });
    expect((await reader.read(WORKSPACE, id)).state.sum).toBe(10);
    expect([...new Set(reads)]).toEqual([0, 3]);
    expect(parsed).toEqual([4]);
  });

  it('checks a refusal again that was decided on a kept fold', async () => {
    const id = randomUUID();
    const isStale: Options['isStale'] = (error, _stream, isKept) => isKept && error instanceof RangeError;
    const store = sums(0, { cache: { maxStreams: 10, decidesOnKept: true }, isStale });
    await add(store, id, 1);
    await add(sums(1), id, 1);
    const committed = await store.commit(WORKSPACE, id, ({ state }) => {
      if (state.sum < 2) throw new RangeError('too early');
      return { events: [added(1)] };
    });
    expect(committed.state.sum).toBe(3);
  });
});

describe('AggregateStore: reads', () => {
  it('reads a stream up to a position of the log', async () => {
    const id = randomUUID();
    const first = await add(sums(0), id, 1);
    await add(sums(0), id, 2);
    const upTo = first.result?.lastPosition ?? 0;
    expect(await sums(0).read(WORKSPACE, id, upTo)).toMatchObject({ state: { sum: 1 }, version: 1 });
    const cached = sums(0, { cache: { maxStreams: 10 } });
    expect(await cached.read(WORKSPACE, id, upTo)).toMatchObject({ state: { sum: 1 }, version: 1 });
  });

  it('takes the newest event alone where it gives the state', async () => {
    const id = randomUUID();
    for (const n of [1, 2, 3]) await add(sums(0), id, n);
    const newest = sums(0, { reads: 'last' });
    expect(await newest.read(WORKSPACE, id)).toMatchObject({ state: { numbers: [3] }, version: 3 });
    expect(await add(newest, id, 4)).toMatchObject({ state: { numbers: [3, 4] }, version: 4 });
  });

  it('appends nothing without events, and its streams alone where that is wanted', async () => {
    const [id, other] = [randomUUID(), randomUUID()];
    const also = [sums(0).appendOf(WORKSPACE, other, 0, [added(1)])];
    const nothing = await sums(0).commit(WORKSPACE, id, () => ({ events: [], also }));
    expect([nothing.result, nothing.isAppended]).toEqual([null, false]);
    await sums(0, { appendsOthersAlone: true }).commit(WORKSPACE, id, () => ({ events: [], also }));
    expect((await sums(0).read(WORKSPACE, other)).version).toBe(1);
  });

  it('records facts that are true at any version', async () => {
    const id = randomUUID();
    await Promise.all([1, 2].map((n) => sums(n === 1 ? 0 : 1).appendAt(WORKSPACE, id, 'any', [added(n)])));
    expect((await sums(0).read(WORKSPACE, id)).state.sum).toBe(3);
  });

  it('appends within the commit of another aggregate', async () => {
    const [id, other] = [randomUUID(), randomUUID()];
    const store = sums(0);
    const committed = await store.commit(WORKSPACE, id, () => ({
      events: [added(1)],
      join: async (own) =>
        (await store.appendAt(WORKSPACE, other, 'any', [added(2)], { also: [own] })).outcome === 'appended',
    }));
    expect(committed).toMatchObject({ result: null, isAppended: true, version: 1 });
    expect((await store.read(WORKSPACE, other)).state.sum).toBe(2);
    expect((await store.read(WORKSPACE, id)).state.sum).toBe(1);
  });
});
