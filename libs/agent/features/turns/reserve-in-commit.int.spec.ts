import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { BudgetReserved, budgetStream } from '@antiphon/contracts/metering';
import type { BudgetEventOf } from '@antiphon/contracts/metering';
import { createPool } from '@antiphon/database';
import type { RecordedEvent } from '@antiphon/event-store';
import { conflict } from '@antiphon/kernel';
import { createTestDatabase } from '@antiphon/testing';
import { WORKSPACE, createAgentWorld, newAddress, submitTo, until } from '../testing/agent-world.js';
import type { AgentWorld, TestProcess } from '../testing/agent-world.js';
import { asksFor, createTestModel, says } from '../testing/test-model.js';

jest.setTimeout(30_000);

let world: AgentWorld;
let asked: AgentWorld['responders']['asked'];
let admin: ReturnType<typeof createPool>;

/** Stands in for a vendor's bound: the bytes of the rendered prompt. */
const bytesOf = (prompt: object): number => Buffer.byteLength(JSON.stringify(prompt));
const model = { ...createTestModel(), inputBound: bytesOf };

beforeAll(async () => {
  const database = await createTestDatabase();
  world = await createAgentWorld(database, process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  admin = createPool({ url: database.url, applicationName: 'spec', max: 1 });
  ({ asked } = world.responders);
});
beforeEach(async () => {
  model.reply = async () => says('hello');
  model.requests.length = 0;
  for (const kept of Object.values(asked)) kept.length = 0;
  await admin.query(`insert into budget_rules (workspace, provider, model, input_price, output_price, valid_until)
    values ('${WORKSPACE}', 'first', 'm', 1000000, 2000000, now() + interval '1 hour')
    on conflict (workspace, provider, model) do update set valid_until = excluded.valid_until`);
});
afterEach(async () => {
  world.responders.assemble = assemble;
  world.responders.reserve = reserve;
  await world.stopAll();
});
afterAll(async () => {
  await admin.end();
  await world.close();
});

const assemble: AgentWorld['responders']['assemble'] = async ({ atLeast }) => ({
  ...{ soul: null, facts: [], tokens: 0, version: atLeast },
});
const reserve: AgentWorld['responders']['reserve'] = async ({ reservationId, maxOutputTokens }) => ({
  ...{ granted: true, reservationId, maxOutputTokens, price: null },
});

const start = (): TestProcess => world.process({ models: model });
const openSession = async (agent: TestProcess): Promise<string> => {
  const { sessionId } = await submitTo(agent, { address: newAddress() });
  await world.ended(sessionId);
  asked.reserve.length = 0;
  return sessionId;
};
const callsOf = (events: readonly RecordedEvent[]): readonly RecordedEvent[] =>
  events.filter(({ type }) => type === 'ModelCallStarted');
const budgetOf = ({ data }: RecordedEvent): Promise<RecordedEvent[]> =>
  world.store.readStream(WORKSPACE, budgetStream(String(data['reservationId'])));
const reservedBy = async (call: RecordedEvent): Promise<BudgetEventOf<'BudgetReserved'>['data']> =>
  BudgetReserved.shape.data.parse((await budgetOf(call))[0]?.data);

describe('the turn of a session that the process drove before', () => {
  it('reserves its bound in the commit that accepts it, and metering is not asked', async () => {
    const agent = start();
    const sessionId = await openSession(agent);
    await submitTo(agent, { sessionId }, 'again');
    const events = await world.ended(sessionId, 2);
    const [, second] = callsOf(events);
    const budget = await budgetOf(second!);
    expect(budget.map(({ type }) => type)).toEqual(['BudgetReserved', 'BudgetSettled']);
    expect(budget[0]?.position).toBe(second!.position + 1);
    expect(asked.reserve).toEqual([]);
    expect(budget[0]?.data).toMatchObject({
      ...{ sessionId, attempt: 2, agentId: 'main', caller: 'spec', provider: 'first', model: 'm' },
      ...{ outputBound: 1_000, price: { inputMicroUsdPerMtok: 1_000_000 } },
    });
    const completed = events.filter(({ type }) => type === 'ModelCallCompleted').at(-1);
    expect(completed?.data['costMicroUsd']).toBe(20);
  });

  it('reserves at least what the provider is sent, with any answers, tools and facts before it', async () => {
    const agent = start();
    const sessionId = await openSession(agent);
    let facts = 0;
    world.responders.assemble = async ({ atLeast }) => ({
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
      model.reply = async () => answers[turn % 2 === 0 ? 1 : Math.min(1, calls++)]!;
      await submitTo(agent, { sessionId }, 'what? '.repeat(turn * 30));
      await world.ended(sessionId, turn);
    }
    const calls = callsOf(await world.events(sessionId));
    const firsts = calls.filter(({ data }) => data['step'] === 1).slice(1);
    expect(firsts).toHaveLength(7);
    for (const call of firsts) {
      const { inputBound } = await reservedBy(call);
      const {
        signal: _signal,
        maxOutputTokens: _max,
        streaming: _streaming,
        workspace: _own,
        ...prompt
      } = model.requests[Number(call.data['attempt']) - 1]!;
      expect(bytesOf(prompt)).toBeLessThanOrEqual(inputBound);
      expect(inputBound - bytesOf(prompt)).toBeLessThan(2_048);
    }
    // The later steps of a turn request their reservations.
    expect(asked.reserve).toHaveLength(calls.length - 8);
  });

  it('makes another attempt if its prompt is larger than the reservation', async () => {
    const agent = start();
    const sessionId = await openSession(agent);
    world.responders.assemble = async (request) => ({
      ...(await assemble(request)),
      soul: { text: 'x'.repeat(3_000), tokens: 1_000 },
    });
    world.responders.reserve = async (request) => {
      const { rows } = await admin.query<{ bound: number }>(
        `select (reserved ->> 'inputBound')::int as bound from budget_reservations where reservation_id = $1`,
        [request.reservationId],
      );
      if (rows[0] && request.inputBound > rows[0].bound)
        throw conflict('METERING.RESERVATION_CONFLICT', 'it was made for another call');
      return reserve(request);
    };
    await submitTo(agent, { sessionId }, 'again');
    const events = await world.ended(sessionId, 2);
    expect(events.slice(-6).map(({ type }) => type)).toEqual([
      ...['TurnRequested', 'ModelCallStarted', 'ModelCallAborted'],
      ...['ModelCallStarted', 'ModelCallCompleted', 'TurnCompleted'],
    ]);
    expect(events.at(-4)?.data).toMatchObject({ dispatched: false, reason: 'dependency_failed' });
    const [, small, large] = callsOf(events);
    expect(asked.settle.map(({ reservationId }) => reservationId)).toContain(small!.data['reservationId']);
    expect(asked.reserve.at(-1)?.reservationId).toBe(large!.data['reservationId']);
    expect(model.requests).toHaveLength(2);
  });

  it('requests its reservation after a commit that left it out, and the next one with its commit', async () => {
    const agent = start();
    const sessionId = await openSession(agent);
    await admin.query('delete from budget_rules');
    for (let turn = 2; turn <= 3; turn++) {
      await submitTo(agent, { sessionId }, 'again');
      await world.ended(sessionId, turn);
    }
    const calls = callsOf(await world.events(sessionId));
    expect(asked.reserve.map(({ reservationId }) => reservationId)).toEqual(
      calls.slice(1).map(({ data }) => data['reservationId']),
    );
    expect(await Promise.all(calls.slice(1).map(budgetOf))).toEqual([[], []]);
  });

  it('reserves once for a request that is repeated', async () => {
    const agent = start();
    const sessionId = await openSession(agent);
    const submit = () => submitTo(agent, { sessionId }, 'again', { idempotencyKey: 'once' });
    const [first, again] = [await submit(), await submit()];
    expect(again).toMatchObject({ turnId: first.turnId, joined: true });
    const calls = callsOf(await world.ended(sessionId, 2));
    expect(calls).toHaveLength(2);
    const { rows } = await admin.query(
      `select count(*)::int as made from budget_reservations where session_id = $1`,
      [sessionId],
    );
    expect(rows).toEqual([{ made: 1 }]);
    expect(asked.reserve).toEqual([]);
  });
});

it('asks metering for the first turn of a session', async () => {
  const agent = start();
  const { sessionId } = await submitTo(agent, { address: newAddress() });
  const [call] = callsOf(await world.ended(sessionId));
  await until(() => asked.reserve.length > 0);
  expect(asked.reserve[0]?.reservationId).toBe(call?.data['reservationId']);
  expect(await budgetOf(call!)).toEqual([]);
});
