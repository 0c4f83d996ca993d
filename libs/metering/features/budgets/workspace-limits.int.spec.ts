import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { WorkspaceScope } from '@antiphon/contracts/metering';
import { openMetering, WORKSPACE } from '../metering-fixtures.spec.js';
import { rebuildBalances } from './rebuild-balances.js';

let metering: Awaited<ReturnType<typeof openMetering>>;
beforeAll(async () => {
  metering = await openMetering();
});
afterAll(() => metering.close());

type Process = ReturnType<(typeof metering)['start']>;
const NONE = { limitTokens: null, limitMicroUsd: null };
const limitIn = (workspace: string) => ({
  set: (of: Process, scope: WorkspaceScope, limitTokens: number | null) =>
    of.limitStore.set({ workspace, scope, limitTokens, limitMicroUsd: null, actor: 'key/1' }),
  remove: (of: Process, scope: WorkspaceScope) =>
    of.limitStore.set({ workspace, scope, ...NONE, isRemoved: true, actor: 'key/1' }),
  dayOf: async (of: Process, at?: number) =>
    (await of.read({ workspace, at })).find(({ kind }) => kind === 'day'),
});
const factsOf = async (workspace: string) => {
  const { rows } = await metering.admin.query<{ type: string; data: object; position: string }>(
    `select type, data, position from events where workspace = $1 and type like 'BudgetLimit%' order by position`,
    [workspace],
  );
  return rows;
};

describe('a limit of a workspace that is set at run time', () => {
  it('replaces the limit of the configuration until it is removed, each change a fact', async () => {
    const limits = limitIn('acme');
    const own = metering.start({ limits: { daily: 100_000 } });
    const ask = () => own.reserve(metering.request({ workspace: 'acme' }));
    await expect(limits.dayOf(own)).resolves.toMatchObject({
      ...{ limitTokens: 100_000, limitFrom: 'configuration' },
    });
    await expect(limits.set(own, 'day', 10)).resolves.toBe(true);
    await expect(limits.set(own, 'day', 10)).resolves.toBe(false);
    await expect(ask()).resolves.toMatchObject({ granted: false, scope: 'day', limit: 10 });
    await expect(limits.dayOf(own)).resolves.toMatchObject({ limitTokens: 10, limitFrom: 'run_time' });
    await expect(limits.remove(own, 'day')).resolves.toBe(true);
    await expect(limits.remove(own, 'day')).resolves.toBe(false);
    await expect(ask()).resolves.toMatchObject({ granted: true });
    await expect(limits.dayOf(own)).resolves.toMatchObject({
      ...{ limitTokens: 100_000, limitFrom: 'configuration' },
    });
    await expect(factsOf('acme')).resolves.toMatchObject([
      { type: 'BudgetLimitSet', data: { scopeKey: 'day', limitTokens: 10, actor: 'key/1' } },
      { type: 'BudgetLimitRemoved', data: { scopeKey: 'day', actor: 'key/1' } },
    ]);
  });

  it('may also allow more than the configuration, or have no limit', async () => {
    const limits = limitIn('roomy');
    const own = metering.start({ limits: { session: 10, monthly: 10 } });
    const ask = () => own.reserve(metering.request({ workspace: 'roomy' }));
    await expect(ask()).resolves.toMatchObject({ granted: false, scope: 'session' });
    await limits.set(own, 'session', 100_000);
    await expect(ask()).resolves.toMatchObject({ granted: false, scope: 'month' });
    const eachSession = { limitTokens: 100_000, limitMicroUsd: null, limitFrom: 'run_time' };
    await expect(own.readBudgets.handle({ workspace: 'roomy' })).resolves.toMatchObject({ eachSession });
    await limits.set(own, 'month', null);
    await expect(ask()).resolves.toMatchObject({ granted: true });
  });

  it('is in force in a process that starts later, and within a second in others', async () => {
    const limits = limitIn('spread');
    const [first, second] = [metering.start(), metering.start()];
    const stop = new AbortController();
    const following = second.limitStore.follow(stop.signal);
    const ask = (of: Process) => of.reserve(metering.request({ workspace: 'spread' }));
    await expect(ask(second)).resolves.toMatchObject({ granted: true });
    await limits.set(first, 'session', 10);
    const until = performance.now() + 1_000;
    let reply = await ask(second);
    while (reply.granted && performance.now() < until) reply = await ask(second);
    expect(reply).toMatchObject({ granted: false, scope: 'session', limit: 10 });
    await expect(ask(metering.start())).resolves.toMatchObject({ granted: false, scope: 'session' });
    stop.abort();
    await following;
  });

  it('belongs to one workspace', async () => {
    const own = metering.start();
    await limitIn('strict').set(own, 'day', 1);
    await expect(own.reserve(metering.request({ workspace: WORKSPACE }))).resolves.toMatchObject({
      granted: true,
    });
  });

  it('is read as of a position, and is the same after a rebuild from the log', async () => {
    const limits = limitIn('past');
    const own = metering.start({ limits: { daily: 7 } });
    await limits.set(own, 'day', 1_000);
    await limits.set(own, 'day', 2_000);
    await limits.remove(own, 'day');
    const positions = (await factsOf('past')).map(({ position }) => Number(position));
    const seen = await Promise.all(positions.map(async (at) => (await limits.dayOf(own, at))?.limitTokens));
    expect(seen).toEqual([1_000, 2_000, 7]);
    const sql = 'select * from budget_limits where position > 0 order by workspace, scope_key';
    const before = (await metering.admin.query(sql)).rows;
    await rebuildBalances(own.pool);
    expect((await metering.admin.query(sql)).rows).toEqual(before);
  });
});

describe('the budgets of agents', () => {
  it('are listed where they have a limit, by workspace and as of a position', async () => {
    const own = metering.start();
    const set = (agentId: string, limitTokens: number | null) =>
      own.limitStore.set({ workspace: 'listed', agentId, limitTokens, limitMicroUsd: null, actor: 'spec' });
    await set('lead', 1_000);
    const [{ position } = { position: '0' }] = await factsOf('listed');
    await set('helper', 500);
    await set('free', null);
    const list = async (workspace: string, at?: number) =>
      (await own.read({ workspace, withAgents: true, at }))
        .filter(({ kind }) => kind === 'agent')
        .map(({ key, limitTokens }) => [key, limitTokens]);
    expect(await list('listed')).toEqual([
      ['agent/helper', 500],
      ['agent/lead', 1_000],
    ]);
    expect(await list('listed', Number(position))).toEqual([['agent/lead', 1_000]]);
    expect(await list('other')).toEqual([]);
  });
});

describe('usage', () => {
  it('is summed by model, key and day, with the same total as by agent', async () => {
    const own = metering.start();
    const call = async (caller: string, model: string, tokens: number) => {
      const request = metering.request({ workspace: WORKSPACE, agentId: 'billed', caller, model });
      await own.reserve(request);
      await own.settle({
        workspace: WORKSPACE,
        reservationId: request.reservationId,
        outcome: { kind: 'used', inputTokens: tokens, outputTokens: 0, estimated: false },
      });
    };
    await call('key/a', 'small', 10);
    await call('key/a', 'large', 20);
    await call('key/b', 'small', 40);
    const tokensBy = async (by: 'model' | 'key' | 'day') => {
      const { groups = [], agents, total } = await own.usage({ agentId: 'billed', by });
      expect(agents).toEqual([]);
      expect(total).toMatchObject({ calls: 3, settledTokens: 70 });
      return Object.fromEntries(groups.map(({ name, settledTokens }) => [name, settledTokens]));
    };
    await expect(tokensBy('key')).resolves.toEqual({ 'key/a': 30, 'key/b': 40 });
    await expect(tokensBy('model')).resolves.toEqual({ 'scripted/small': 50, 'scripted/large': 20 });
    await expect(tokensBy('day')).resolves.toEqual({ '2026-11-21': 70 });
    await expect(own.usage({ agentId: 'billed' })).resolves.toMatchObject({
      ...{ agents: [{ agentId: 'billed', settledTokens: 70 }], total: { settledTokens: 70 } },
    });
  });
});
