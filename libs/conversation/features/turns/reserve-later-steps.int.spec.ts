import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { armFailpoints, transient } from '@antiphon/kernel';
import { WORKSPACE, newAddress, submitTo, until } from '@antiphon/agent-features/testing/agent-world';
import {
  ReserveWorld,
  callsOf,
  completed,
  holdCommits,
  typesOf,
} from '@antiphon/agent-features/testing/reserve-world';
import { asksFor, says } from '@antiphon/agent-features/testing/test-model';
import type { TestModel } from '@antiphon/agent-features/testing/test-model';

jest.setTimeout(30_000);

let given: ReserveWorld;
beforeAll(async () => {
  given = await ReserveWorld.open();
});
beforeEach(() => given.begin());
afterEach(() => given.end());
afterAll(() => given.close());

/** Asks for two tools, and then answers. */
const usesTools: TestModel['reply'] = async ({ messages }) =>
  messages.at(-1)?.role === 'tool' ? says('done') : asksFor({ name: 'echo' }, { name: 'echo' });

describe('a later step of a turn', () => {
  beforeEach(() => {
    given.model.reply = usesTools;
  });
  afterEach(() => armFailpoints(null));

  it('reserves its bound in the commit of its tools, also in the first turn of a session', async () => {
    const agent = given.start();
    const { sessionId } = await submitTo(agent, { address: newAddress() });
    const events = await given.world.ended(sessionId);
    const [first, second] = callsOf(events);
    expect(given.asked.reserve.map(({ reservationId }) => reservationId)).toEqual([
      first!.data['reservationId'],
    ]);
    const budget = await given.budgetOf(second!);
    expect(typesOf(budget)).toEqual(['BudgetReserved', 'BudgetSettled']);
    expect(budget[0]).toMatchObject({
      position: second!.position + 1,
      data: { sessionId, attempt: 2, agentId: 'main', caller: 'spec', inputBound: given.sizeOf(1) },
      metadata: { service: 'agent', epoch: 1 },
    });
    const before = events.filter(({ position }) => position < second!.position);
    expect(typesOf(before).filter((type) => type === 'ToolCallCompleted')).toHaveLength(2);
    expect(before.at(-1)).toMatchObject({ type: 'ToolCallCompleted', position: second!.position - 1 });
  });

  it('is not sent to the provider before the commit of its reservation', async () => {
    const agent = given.start();
    let held: ReturnType<typeof holdCommits> | undefined;
    given.world.responders.tool = async ({ input }) => {
      if (given.asked.tool.length === 2) await (held ??= holdCommits(given.world.pool));
      return completed(input);
    };
    const { sessionId } = await submitTo(agent, { address: newAddress() });
    // A commit may wait for another one before the tools are called.
    const release = await until(() => held);
    await until(async () => (await given.countWaiting()) > 0);
    expect(given.model.requests).toHaveLength(1);
    await release();
    await given.world.ended(sessionId);
    expect(given.model.requests).toHaveLength(2);
  });

  it('requests its reservation if the commit left it out', async () => {
    await given.admin.query('delete from budget_rules');
    const agent = given.start();
    const { sessionId } = await submitTo(agent, { address: newAddress() });
    const calls = callsOf(await given.world.ended(sessionId));
    expect(given.asked.reserve.map(({ reservationId }) => reservationId)).toEqual(
      calls.map(({ data }) => data['reservationId']),
    );
    expect(await Promise.all(calls.map(given.budgetOf))).toEqual([[], []]);
  });

  it('settles the last call and reserves the next one in one commit, if a turn is queued', async () => {
    const agent = given.start();
    given.model.reply = async () => says('hello');
    const sessionId = await given.openSession(agent);
    let answer: () => void = () => undefined;
    given.model.reply = () => new Promise((resolve) => (answer = () => resolve(says('hello'))));
    await submitTo(agent, { sessionId }, 'again');
    await until(() => given.model.requests.length === 2);
    given.model.reply = async () => says('hello');
    await submitTo(agent, { sessionId }, 'next');
    answer();
    const [, first, second] = callsOf(await given.world.ended(sessionId, 3));
    expect(given.asked.reserve).toEqual([]);
    const [, settled] = await given.budgetOf(first!);
    const [reserved] = await given.budgetOf(second!);
    expect([settled, reserved]).toMatchObject([
      { type: 'BudgetSettled', position: second!.position + 1 },
      { type: 'BudgetReserved', position: second!.position + 2 },
    ]);
  });

  it('releases the reservation of a call that is cancelled before it is sent', async () => {
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    let reservations = 0;
    const agent = given.start({
      failpoint: (name) =>
        name === 'agent.turn.reserved' && ++reservations === 2 ? held : Promise.resolve(),
    });
    const { sessionId } = await submitTo(agent, { address: newAddress() });
    await until(() => reservations === 2);
    await agent.runtime.cancelTurn({ workspace: WORKSPACE, sessionId, caller: 'spec' });
    release();
    const events = await given.world.ended(sessionId);
    expect(events.slice(-2)).toMatchObject([
      { type: 'ModelCallAborted', data: { reason: 'cancelled', dispatched: false } },
      { type: 'TurnCancelled' },
    ]);
    const [, second] = callsOf(events);
    expect((await given.reservedBy(second!)).attempt).toBe(2);
    const { reservationId } = second!.data;
    const told = await until(() => given.asked.settle.find((one) => one.reservationId === reservationId));
    expect(told.outcome).toEqual({ kind: 'not_dispatched', reason: 'cancelled' });
    expect(given.model.requests).toHaveLength(1);
  });

  it.each(['log.reservation.taken', 'log.reservation.committed'] as const)(
    'is made once by another process if its driver dies at %s',
    async (point) => {
      let die: () => void = () => undefined;
      const died = new Promise<void>((resolve) => (die = resolve));
      const agent = given.start();
      armFailpoints(async (name) => {
        if (name !== point) return;
        armFailpoints(null);
        agent.kill();
        die();
        // The processes of a spec share a store. The dead one gets no answer from it.
        if (point === 'log.reservation.taken') throw transient('LOG.UNAVAILABLE', 'its process died');
      });
      const { sessionId } = await submitTo(agent, { address: newAddress() });
      await died;
      const isCommitted = point === 'log.reservation.committed';
      expect(await given.countReserved(sessionId)).toBe(isCommitted ? 1 : 0);
      await given.world.handleExit(agent);
      given.start();
      const events = await given.world.ended(sessionId);
      expect(events.at(-1)?.type).toBe('TurnCompleted');
      const calls = callsOf(events);
      expect(calls).toHaveLength(isCommitted ? 3 : 2);
      expect(typesOf(events).filter((type) => type === 'ToolCallCompleted')).toHaveLength(2);
      const made = await Promise.all(calls.map(given.budgetOf));
      const requested = given.asked.reserve.map(({ reservationId }) => reservationId);
      // Each call has one reservation: the commit's, or a requested one.
      for (const [index, { data }] of calls.entries())
        expect(requested.includes(String(data['reservationId']))).toBe(made[index]?.length === 0);
      if (isCommitted) {
        expect(events.find(({ type }) => type === 'ModelCallAborted')?.data).toMatchObject({
          ...{ reason: 'driver_lost', reservationId: calls[1]!.data['reservationId'] },
        });
        expect(given.asked.settle.map(({ reservationId }) => reservationId)).toContain(
          calls[1]!.data['reservationId'],
        );
      }
    },
  );

  it.each(['log.reservation.taken', 'log.reservation.committed'] as const)(
    'reserves each call once if its append fails at %s',
    async (point) => {
      let isArmed = true;
      armFailpoints(async (name) => {
        if (name !== point || !isArmed) return;
        isArmed = false;
        throw transient('LOG.UNAVAILABLE', 'a failpoint threw');
      });
      const agent = given.start();
      const { sessionId } = await submitTo(agent, { address: newAddress() });
      const events = await given.world.ended(sessionId);
      expect(isArmed).toBe(false);
      expect(events.at(-1)?.type).toBe('TurnCompleted');
      // A start whose append failed may be in the log: the driver abandons it then.
      const later = callsOf(events).slice(1);
      expect(later).toHaveLength(point === 'log.reservation.committed' ? 2 : 1);
      expect(await given.countReserved(sessionId)).toBe(later.length);
      const ends = await Promise.all(later.map(given.budgetOf));
      expect(typesOf(ends.at(-1)!)).toEqual(['BudgetReserved', 'BudgetSettled']);
      const lost = later.slice(0, -1).map(({ data }) => String(data['reservationId']));
      await until(() =>
        lost.every((id) => given.asked.settle.some(({ reservationId }) => reservationId === id)),
      );
    },
  );
});
