import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { newAddress, submitTo, until } from '@antiphon/agent-features/testing/agent-world';
import { ReserveWorld, assemble, callsOf, typesOf } from '@antiphon/agent-features/testing/reserve-world';
import { asksFor, says } from '@antiphon/agent-features/testing/test-model';

jest.setTimeout(30_000);

let given: ReserveWorld;
beforeAll(async () => {
  given = await ReserveWorld.open();
});
beforeEach(() => given.begin());
afterEach(() => given.end());
afterAll(() => given.close());

describe('the turn of a session that the process drove before', () => {
  it('reserves its bound in the commit that accepts it, and metering is not asked', async () => {
    const agent = given.start();
    const sessionId = await given.openSession(agent);
    await submitTo(agent, { sessionId }, 'again');
    const events = await given.world.ended(sessionId, 2);
    const [, second] = callsOf(events);
    const budget = await given.budgetOf(second!);
    expect(budget.map(({ type }) => type)).toEqual(['BudgetReserved', 'BudgetSettled']);
    expect(budget[0]?.position).toBe(second!.position + 1);
    expect(given.asked.reserve).toEqual([]);
    expect(budget[0]?.data).toMatchObject({
      ...{ sessionId, attempt: 2, agentId: 'main', caller: 'spec', provider: 'first', model: 'm' },
      ...{ outputBound: 1_000, price: { inputMicroUsdPerMtok: 1_000_000 } },
    });
    const completed = events.filter(({ type }) => type === 'ModelCallCompleted').at(-1);
    expect(completed?.data['costMicroUsd']).toBe(20);
  });

  it('reserves at least what the provider is sent, with any answers, tools and facts before it', async () => {
    const agent = given.start();
    const sessionId = await given.openSession(agent);
    let facts = 0;
    given.world.responders.assemble = async ({ atLeast }) => ({
      ...{ soul: null, tokens: 0, version: atLeast },
      facts: Array.from({ length: facts }, (_, n) => ({
        ...{ factId: randomUUID(), sourceEventId: randomUUID(), supersededAt: null, confidence: 1 },
        ...{ subject: 'user', predicate: 'likes', object: `tea ${n}`, learnedAt: '2026-11-23T10:00:00.000Z' },
      })),
    });
    for (let turn = 2; turn <= 8; turn++) {
      facts = turn % 4;
      let calls = 0;
      const answers = [
        asksFor({ name: 'echo', input: { of: 'ü"\n'.repeat(turn * 9) } }),
        says('é'.repeat(turn * 200)),
      ];
      given.model.reply = async () => answers[turn % 2 === 0 ? 1 : Math.min(1, calls++)]!;
      await submitTo(agent, { sessionId }, 'what? '.repeat(turn * 30));
      await given.world.ended(sessionId, turn);
    }
    const calls = callsOf(await given.world.events(sessionId));
    const firsts = calls.filter(({ data }) => data['step'] === 1).slice(1);
    expect(firsts).toHaveLength(7);
    for (const call of firsts) {
      const { inputBound } = await given.reservedBy(call);
      const sent = given.sizeOf(Number(call.data['attempt']) - 1);
      expect(sent).toBeLessThanOrEqual(inputBound);
      expect(inputBound - sent).toBeLessThan(2_048);
    }
    // The memory and the tools of a turn are known from its first prompt.
    const later = calls.filter(({ data }) => data['step'] !== 1);
    expect(later).toHaveLength(3);
    for (const call of later)
      expect((await given.reservedBy(call)).inputBound).toBe(given.sizeOf(Number(call.data['attempt']) - 1));
    expect(given.asked.reserve).toEqual([]);
  });

  it('makes another attempt if its prompt is larger than the reservation', async () => {
    const agent = given.start();
    const sessionId = await given.openSession(agent);
    given.world.responders.assemble = async (request) => ({
      ...(await assemble(request)),
      soul: { text: 'x'.repeat(3_000), tokens: 1_000 },
    });
    given.world.responders.reserve = given.refuseLarger;
    await submitTo(agent, { sessionId }, 'again');
    const events = await given.world.ended(sessionId, 2);
    expect(events.slice(-6).map(({ type }) => type)).toEqual([
      ...['TurnRequested', 'ModelCallStarted', 'ModelCallAborted'],
      ...['ModelCallStarted', 'ModelCallCompleted', 'TurnCompleted'],
    ]);
    expect(events.at(-4)?.data).toMatchObject({ dispatched: false, reason: 'dependency_failed' });
    const [, small, large] = callsOf(events);
    expect(given.asked.settle.map(({ reservationId }) => reservationId)).toContain(
      small!.data['reservationId'],
    );
    const refused = new Set(given.asked.reserve.map(({ reservationId }) => reservationId));
    expect([...refused]).toEqual([small!.data['reservationId']]);
    expect((await given.reservedBy(large!)).inputBound).toBe(given.sizeOf(1));
    expect(given.model.requests).toHaveLength(2);
  });

  it('leaves more room in a session whose memory varies, after one attempt too many', async () => {
    const agent = given.start();
    const sessionId = await given.openSession(agent);
    given.world.responders.reserve = given.refuseLarger;
    for (let turn = 2; turn <= 7; turn++) {
      const soul = { text: 'x'.repeat(turn % 2 === 0 ? 3_000 : 10), tokens: 1_000 };
      given.world.responders.assemble = async (request) => ({ ...(await assemble(request)), soul });
      await submitTo(agent, { sessionId }, 'again');
      await given.world.ended(sessionId, turn);
    }
    const events = await given.world.events(sessionId);
    expect(events.filter(({ type }) => type === 'ModelCallAborted')).toHaveLength(1);
    const made = await Promise.all(callsOf(events).slice(1).map(given.budgetOf));
    expect(made.map(typesOf)).toEqual(
      made.map((_, attempt) => ['BudgetReserved', ...(attempt === 0 ? [] : ['BudgetSettled'])]),
    );
  });

  it('requests its reservation after a commit that left it out, and the next one with its commit', async () => {
    const agent = given.start();
    const sessionId = await given.openSession(agent);
    await given.admin.query('delete from budget_rules');
    for (let turn = 2; turn <= 3; turn++) {
      await submitTo(agent, { sessionId }, 'again');
      await given.world.ended(sessionId, turn);
    }
    const calls = callsOf(await given.world.events(sessionId));
    expect(given.asked.reserve.map(({ reservationId }) => reservationId)).toEqual(
      calls.slice(1).map(({ data }) => data['reservationId']),
    );
    expect(await Promise.all(calls.slice(1).map(given.budgetOf))).toEqual([[], []]);
  });

  it('reserves once for a request that is repeated', async () => {
    const agent = given.start();
    const sessionId = await given.openSession(agent);
    const submit = () => submitTo(agent, { sessionId }, 'again', { idempotencyKey: 'once' });
    const [first, again] = [await submit(), await submit()];
    expect(again).toMatchObject({ turnId: first.turnId, joined: true });
    const calls = callsOf(await given.world.ended(sessionId, 2));
    expect(calls).toHaveLength(2);
    expect(await given.countReserved(sessionId)).toBe(1);
    expect(given.asked.reserve).toEqual([]);
  });
});

describe('the first turn of a session', () => {
  it('asks metering if the process drove no turn of its agent before', async () => {
    const agent = given.start();
    const { sessionId } = await submitTo(agent, { address: newAddress() });
    const [call] = callsOf(await given.world.ended(sessionId));
    await until(() => given.asked.reserve.length > 0);
    expect(given.asked.reserve[0]?.reservationId).toBe(call?.data['reservationId']);
    expect(await given.budgetOf(call!)).toEqual([]);
  });

  it('is reserved in the commit that begins the session if it did', async () => {
    const agent = given.start();
    await given.openSession(agent);
    const { sessionId } = await submitTo(agent, { address: newAddress() }, 'another person');
    const events = await given.world.ended(sessionId);
    const [call] = callsOf(events);
    expect(typesOf(await given.budgetOf(call!))).toEqual(['BudgetReserved', 'BudgetSettled']);
    const { inputBound } = await given.reservedBy(call!);
    const sent = given.sizeOf(1);
    expect(sent).toBeLessThanOrEqual(inputBound);
    expect(inputBound - sent).toBeLessThan(2_048);
    expect(given.asked.reserve).toEqual([]);
    const { rows } = await given.admin.query(
      'select distinct xmin::text as transaction from events where position = any($1)',
      [[events[0]?.position, call!.position, call!.position + 1]],
    );
    expect(rows).toHaveLength(1);
  });
});
