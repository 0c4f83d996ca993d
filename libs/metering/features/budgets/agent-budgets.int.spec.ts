import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { createLogReader } from '@antiphon/event-store';
import type { RecordedEvent } from '@antiphon/event-store';
import { openMetering } from '../metering-fixtures.spec.js';
import { rebuildBalances } from './rebuild-balances.js';

let metering: Awaited<ReturnType<typeof openMetering>>;
beforeAll(async () => {
  metering = await openMetering();
});
afterAll(() => metering.close());

const BOUND = 500;
/** 100 at night. */
const ROUNDS = Number(process.env['ANTIPHON_BUDGET_ROUNDS'] ?? 20);
/** Chains from an agent to the root, of one tree with 8 agents. */
const treeOf = (root: string): readonly (readonly string[])[] => {
  const [a, b] = [`${root}-a`, `${root}-b`];
  const chains = [[root], [a, root], [b, root], [`${a}1`, a, root], [`${a}2`, a, root], [`${b}1`, b, root]];
  return [...chains, [`${a}1x`, `${a}1`, a, root], [`${b}1x`, `${b}1`, b, root]];
};
const chainOf = (agents: readonly string[]) => ({ agents: [...agents], agentId: agents[0] as string });

interface Booked {
  settled: number;
  reserved: number;
}

/** Folds budget events by agent scope, with the limits in force at each position. */
const createBook = () => {
  const limits = new Map<string, number | null>();
  const books = new Map<string, Booked>();
  const open = new Map<string, { keys: string[]; tokens: number }>();
  const move = (id: string, settled: number, reserved: number): void => {
    for (const key of open.get(id)?.keys ?? []) {
      const book = books.get(key) ?? { settled: 0, reserved: 0 };
      books.set(key, { settled: book.settled + settled, reserved: book.reserved + reserved });
    }
  };
  return {
    put: ({ type, data }: RecordedEvent): void => {
      const id = String(data['reservationId']);
      const amount = (name: string): number => data[name] as number;
      if (type === 'BudgetLimitSet')
        limits.set(String(data['scopeKey']), data['limitTokens'] as number | null);
      if (type === 'BudgetReserved') {
        const scopes = data['scopes'] as { kind: string; key: string }[];
        const keys = scopes.filter(({ kind }) => kind === 'agent').map(({ key }) => key);
        open.set(id, { keys, tokens: amount('tokens') });
        move(id, 0, amount('tokens'));
      }
      const held = open.get(id)?.tokens ?? 0;
      if (type === 'BudgetReleased') move(id, 0, -held);
      if (type === 'BudgetSettled') move(id, amount('inputTokens') + amount('outputTokens'), -held);
    },
    scopesOver: (): string[] =>
      [...books]
        .filter(([key, { settled, reserved }]) => settled + reserved > (limits.get(key) ?? Infinity))
        .map(([key]) => key),
    callsOf: (key: string): number => [...open.values()].filter(({ keys }) => keys.includes(key)).length,
  };
};

/** Folds the log and returns each position at which a scope was over the limit then in force. */
const findExcesses = async (rootKey: string): Promise<{ calls: number; over: string[] }> => {
  const log = createLogReader(metering.admin);
  const book = createBook();
  const over: string[] = [];
  for (let after = 0; ;) {
    const page = await log.readLog({ after, limit: 1_000, categories: ['budget'] });
    const last = page.at(-1);
    if (!last) return { calls: book.callsOf(rootKey), over };
    after = last.position;
    for (const event of page) {
      book.put(event);
      over.push(...book.scopesOver().map((key) => `${event.position} ${key}`));
    }
  }
};

describe('the budget of a tree of agents', () => {
  // @shows agents-A3
  it(`admits exactly one of 512 calls in each of ${ROUNDS} rounds with room for one, over two processes`, async () => {
    const processes = [metering.start(), metering.start()] as const;
    const [{ setLimit, settle, ledger }] = processes;
    const tree = treeOf('lead');
    const [tight, wide] = ['lead-b1', 'lead-a'];
    let limit = BOUND;
    await setLimit('lead', limit);
    // Nested: more than its parent has left is accepted, and the parent's limit still applies.
    await setLimit(wide, 1_000_000);
    await setLimit(tight, BOUND - 1);
    const refusedBy = new Map<string, number>();
    for (let round = 1; round <= ROUNDS; round++) {
      const requests = Array.from({ length: 64 * tree.length }, (_, i) =>
        metering.request({ ...chainOf(tree[i % tree.length]!), attempt: round, sessionId: randomUUID() }),
      );
      const replies = await Promise.all(
        requests.map((one, i) => processes[i % 3 === 0 ? 0 : 1]!.reserve(one)),
      );
      const granted = requests.filter((_, i) => replies[i]?.granted);
      expect(granted).toHaveLength(1);
      expect(granted[0]?.agents).not.toContain(tight);
      replies.forEach((reply, i) => {
        if (reply.granted) return;
        const { scope, scopeKey = '', message, used, limit: told } = reply;
        const key = requests[i]?.agents?.includes(tight) ? `agent/${tight}` : 'agent/lead';
        expect({ scope, scopeKey }).toEqual({ scope: 'agent', scopeKey: key });
        expect(message).toBe(`token budget exceeded (agent: ${used}/${told})`);
        refusedBy.set(scopeKey, (refusedBy.get(scopeKey) ?? 0) + 1);
      });
      const { reservationId } = granted[0]!;
      if (round % 2 === 0) {
        // An unused bound is free again: the next round has room for one call without a change.
        const outcome = { kind: 'not_dispatched', reason: 'provider_unreachable' } as const;
        await ledger.submit('default', { type: 'Settle', reservationId, outcome });
      } else {
        const outcome = { kind: 'used', inputTokens: 60, outputTokens: 40, estimated: false } as const;
        await settle({ workspace: 'default', reservationId, outcome });
        limit += 100;
        await setLimit('lead', limit);
        // The other process reads the change within a second.
        await processes[1].limitStore.set({
          ...{
            workspace: 'default',
            agentId: 'lead',
            limitTokens: limit,
            limitMicroUsd: null,
            actor: 'spec',
          },
        });
      }
    }
    expect(await findExcesses('agent/lead')).toEqual({ calls: ROUNDS, over: [] });
    expect(refusedBy.get(`agent/${tight}`)).toBe(ROUNDS * 64 * 2);
  }, 300_000);

  // @shows agents-A3
  it('gives back what a child did not use when its call ends', async () => {
    const { reserve, settle, setLimit, read } = metering.start();
    await setLimit('parent', 1_000);
    await setLimit('child', 900);
    const first = metering.request({ ...chainOf(['child', 'parent']) });
    await expect(reserve(first)).resolves.toMatchObject({ granted: true });
    const own = metering.request({ ...chainOf(['parent']), inputBound: 200 });
    await expect(reserve(own)).resolves.toMatchObject({ granted: false, used: 500, limit: 1_000 });
    const outcome = { kind: 'used', inputTokens: 100, outputTokens: 50, estimated: false } as const;
    await settle({ workspace: 'default', reservationId: first.reservationId, outcome });
    await expect(reserve(own)).resolves.toMatchObject({ granted: true });
    const [scope] = await read({ workspace: 'default', agentId: 'parent' });
    expect(scope).toMatchObject({
      ...{ kind: 'agent', key: 'agent/parent', limitTokens: 1_000 },
      ...{ settledTokens: 150, reservedTokens: 600 },
    });
  });

  it('refuses money over the limit of an ancestor', async () => {
    const priceOf = () => ({ inputMicroUsdPerMtok: 3_000_000, outputMicroUsdPerMtok: 15_000_000 });
    const { reserve, setLimit } = metering.start({ priceOf });
    await setLimit('patron', null, 6_299);
    await expect(reserve(metering.request({ ...chainOf(['worker', 'patron']) }))).resolves.toMatchObject({
      granted: false,
      scopeKey: 'agent/patron',
      message: 'cost budget exceeded (agent: $0.00/$0.006299)',
      resetsAt: null,
    });
  });
});

describe('the budget of a task', () => {
  it('admits no more calls than fit, over two processes, and names its scope', async () => {
    const processes = [metering.start(), metering.start()] as const;
    const limits = { taskId: randomUUID(), limitTokens: 3 * BOUND, limitMicroUsd: null };
    const outer = { taskId: randomUUID(), limitTokens: 10 * BOUND, limitMicroUsd: null };
    const requests = Array.from({ length: 64 }, (_, i) =>
      metering.request({
        attempt: i + 1,
        sessionId: randomUUID(),
        tasks: i < 32 ? [limits, outer] : [outer],
      }),
    );
    const replies = await Promise.all(requests.map((one, i) => processes[i % 2 === 0 ? 0 : 1].reserve(one)));
    const granted = (from: number, to: number) => replies.slice(from, to).filter((reply) => reply.granted);
    expect(granted(0, 32).length).toBeLessThanOrEqual(3);
    expect(granted(0, 64)).toHaveLength(10);
    const refused = replies.filter((reply) => !reply.granted);
    for (const { scope, scopeKey = '' } of refused) {
      expect(scope).toBe('task');
      expect([`task/${limits.taskId}`, `task/${outer.taskId}`]).toContain(scopeKey);
    }
    expect(refused[0]?.message).toMatch(/^token budget exceeded \(task: \d+\/\d+\)$/);
  });
});

describe('a limit', () => {
  it('is one fact for a repeated request, and a second fact for a change', async () => {
    const { setLimit } = metering.start();
    const results = await Promise.all(Array.from({ length: 10 }, () => setLimit('repeated', 5_000)));
    expect(results.filter(Boolean)).toHaveLength(1);
    await expect(setLimit('repeated', 6_000)).resolves.toBe(true);
    await expect(setLimit('repeated', null)).resolves.toBe(true);
    await expect(setLimit('never-limited', null)).resolves.toBe(false);
    const { rows } = await metering.admin.query<{ data: unknown }>(
      `select data from events where type = 'BudgetLimitSet' and data->>'scopeKey' = any ($1) order by position`,
      [['agent/repeated', 'agent/never-limited']],
    );
    expect(rows.map(({ data }) => data)).toMatchObject([
      { limitTokens: 5_000, limitMicroUsd: null, actor: 'spec' },
      { limitTokens: 6_000 },
      { limitTokens: null },
    ]);
  });

  it('is in force in a process that did not see the agent before, and within a second in others', async () => {
    const [first, second] = [metering.start(), metering.start()];
    const stop = new AbortController();
    const following = second.limitStore.follow(stop.signal);
    const ask = () => second.reserve(metering.request({ ...chainOf(['newborn']) }));
    await first.setLimit('newborn', 10);
    await expect(ask()).resolves.toMatchObject({ granted: false, scopeKey: 'agent/newborn' });
    await first.setLimit('newborn', null);
    const until = performance.now() + 1_000;
    let reply = await ask();
    while (!reply.granted && performance.now() < until) reply = await ask();
    expect(reply.granted).toBe(true);
    stop.abort();
    await following;
  });

  it('is the same after the balances were rebuilt from the log', async () => {
    const { setLimit, pool } = metering.start();
    await setLimit('rebuilt', 42, 43);
    const sql = `select * from budget_limits where position > 0 order by workspace, scope_key`;
    const before = (await metering.admin.query(sql)).rows;
    await rebuildBalances(pool);
    expect((await metering.admin.query(sql)).rows).toEqual(before);
  });
});

describe('a call of an agent without a limit', () => {
  it('takes one statement, like a call before agents had budgets', async () => {
    const statements: string[] = [];
    const wrapPool = (pool: pg.Pool): pg.Pool => {
      const watch = <T extends pg.Pool | pg.PoolClient>(db: T): T =>
        new Proxy(db, {
          get: (target, key) => {
            const value = Reflect.get(target, key, target) as unknown;
            if (key === 'connect') return async () => watch((await target.connect()) as pg.PoolClient);
            if (key === 'query')
              return (...given: unknown[]) => {
                const [query] = given as [string | { name?: string; text?: string }];
                statements.push(typeof query === 'string' ? query : (query.name ?? query.text ?? '?'));
                return (value as (...rest: unknown[]) => unknown).apply(target, given);
              };
            return typeof value === 'function' ? (value.bind(target) as unknown) : value;
          },
        });
      return watch(pool);
    };
    const { reserve } = metering.start({ wrapPool });
    const chain = chainOf(['plain', 'plain-root']);
    await reserve(metering.request(chain));
    statements.length = 0;
    for (let i = 0; i < 3; i++) await reserve(metering.request(chain));
    expect(statements).toHaveLength(3);
  });
});

describe('the cost of agents', () => {
  // @shows agents-A14
  it('is read for one agent and for a tree, and sums to the ledger with differences of 0', async () => {
    const priceOf = () => ({ inputMicroUsdPerMtok: 3_333_333, outputMicroUsdPerMtok: 7_777_777 });
    const { reserve, settle, usage } = metering.start({ priceOf });
    metering.clock.time = Date.parse('2027-02-03T10:00:00.000Z');
    const before = (await usage()).total;
    for (let i = 0; i < 40; i++) {
      const request = metering.request({ ...chainOf([`cost-${i % 4}`, 'cost-root']), attempt: i + 1 });
      await reserve(request);
      const { reservationId } = request;
      const outcome = { kind: 'used', inputTokens: i, outputTokens: 7 * i, estimated: false } as const;
      if (i % 5 > 0) await settle({ workspace: 'default', reservationId, outcome });
    }
    const { agents, total } = await usage({ rootId: 'cost-root' });
    const month = `select settled_tokens, settled_micro_usd, reserved_tokens, reserved_micro_usd
      from budget_balances where scope_key = 'month/2027-02'`;
    const { rows } = await metering.admin.query<Record<string, string>>(month);
    expect(agents.map(({ agentId }) => agentId).sort()).toEqual([0, 1, 2, 3].map((n) => `cost-${n}`));
    expect(total).toEqual({
      calls: 40,
      ...{ inputTokens: 640, outputTokens: 4_480, cacheReadTokens: 0, cacheWriteTokens: 0 },
      ...{ estimatedTokens: 0, estimatedMicroUsd: 0 },
      settledTokens: Number(rows[0]?.['settled_tokens']),
      settledMicroUsd: Number(rows[0]?.['settled_micro_usd']),
      reservedTokens: Number(rows[0]?.['reserved_tokens']),
      reservedMicroUsd: Number(rows[0]?.['reserved_micro_usd']),
    });
    expect(await usage({ agentId: 'cost-1' })).toMatchObject({ agents: [{ agentId: 'cost-1', calls: 10 }] });
    const all = (await usage()).total;
    expect(all.settledMicroUsd - before.settledMicroUsd).toBe(total.settledMicroUsd);
  });

  it('names at most 1,000 agents, and counts all of them', async () => {
    const { reserve, usage } = metering.start({});
    await reserve(metering.request(chainOf(['many-agents'])));
    const before = (await usage()).total;
    const copies = `insert into budget_usage
      select (jsonb_populate_record(u, jsonb_build_object('key', n::text::bytea, 'agent_id', 'many-' || n, 'calls', 1))).*
      from budget_usage u, generate_series(1, 1200) n where u.agent_id = 'many-agents'`;
    await metering.admin.query(copies);
    const { agents, total } = await usage();
    expect(agents).toHaveLength(1_000);
    expect(total.calls).toBe(before.calls + 1_200);
    await metering.admin.query(`delete from budget_usage where agent_id ~ '^many-[0-9]'`);
  });
});
