import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { sessionStream } from '@antiphon/contracts/agent';
import { conflict, isoTime } from '@antiphon/kernel';
import { systemClock } from '@antiphon/observability';
import { createTestDatabase } from '@antiphon/testing';
import {
  WORKSPACE,
  createAgentWorld,
  newAddress,
  submitTo,
  until,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { holdCommits } from '@antiphon/agent-features/testing/reserve-world';
import { streams } from '@antiphon/agent-features/testing/test-model';

jest.setTimeout(30_000);

let world: AgentWorld;
let asked: AgentWorld['responders']['asked'];

beforeAll(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  ({ asked } = world.responders);
});
beforeEach(() => {
  world.model.reply = streams('hello');
  world.model.requests.length = 0;
  for (const kept of Object.values(asked)) kept.length = 0;
});
afterEach(() => world.stopAll());
afterAll(() => world.close());

/**
 * Returns a session of two turns. The commit of the second one left its reservation out, so the
 * next turn requests its own while it is being committed.
 */
const openSession = async (agent: TestProcess): Promise<string> => {
  const { sessionId } = await submitTo(agent, { address: newAddress() });
  await world.ended(sessionId);
  await submitTo(agent, { sessionId });
  await world.ended(sessionId, 2);
  asked.reserve.length = 0;
  return sessionId;
};

describe('a model call', () => {
  it('is prepared while its start is being committed, with one reservation', async () => {
    const agent = world.process();
    const sessionId = await openSession(agent);
    const release = await holdCommits(world.pool);
    const submitted = submitTo(agent, { sessionId });
    await until(() => asked.reserve.length > 0);
    expect(world.model.requests).toHaveLength(2);
    await release();
    await submitted;
    const events = await world.ended(sessionId, 3);
    expect(asked.reserve).toHaveLength(1);
    expect(asked.reserve[0]).toMatchObject({ sessionId, attempt: 3 });
    const started = events.filter(({ type }) => type === 'ModelCallStarted').at(-1);
    expect(started?.data['reservationId']).toBe(asked.reserve[0]?.reservationId);
  });

  it('reserves again under the same id when its reservation may have expired', async () => {
    let later = 0;
    const agent = world.process({ clock: { now: () => Date.now() + later } });
    const sessionId = await openSession(agent);
    const release = await holdCommits(world.pool);
    const submitted = submitTo(agent, { sessionId });
    await until(() => asked.reserve.length > 0);
    later = 31_000;
    await release();
    await submitted;
    await world.ended(sessionId, 3);
    expect(asked.reserve).toHaveLength(2);
    expect(asked.reserve[1]?.reservationId).toBe(asked.reserve[0]?.reservationId);
  });

  /** Metering reserves, and its response is an error. */
  const failingOnce = () => {
    const { reserve } = world.responders;
    world.responders.reserve = () => {
      world.responders.reserve = reserve;
      return Promise.reject(conflict('SPEC.NO', 'no'));
    };
  };

  it.each([
    ['', () => undefined],
    [', also if the response of its reservation was lost', failingOnce],
  ])('that never starts, because another process was faster, releases its budget%s', async (_, prepare) => {
    const agent = world.process({ times: { leaseMs: 3_000, pollMs: 3_600_000 } });
    const sessionId = await openSession(agent);
    // Another process appends a turn without the lease: this one decides without that event.
    const [first, metadata] = [randomUUID(), { correlationId: 'spec', service: 'agent' as const }];
    const data = { turnId: first, content: 'first', requestedAt: isoTime(systemClock) };
    const event = { eventId: randomUUID(), type: 'TurnRequested', schemaVersion: 1, data, metadata };
    const streamId = sessionStream(sessionId);
    await world.store.append({
      workspace: WORKSPACE,
      streams: [{ streamId, expectedVersion: 'any', events: [event] }],
    });
    prepare();
    const { turnId: second } = await submitTo(agent, { sessionId });
    const events = await world.ended(sessionId, 4);
    const calls = events.filter(({ type }) => type === 'ModelCallStarted').slice(2);
    expect(calls.map((call) => call.data['turnId'])).toEqual([first, second]);
    const cited = calls.map((call) => call.data['reservationId']);
    const stray = asked.reserve.filter(({ reservationId }) => !cited.includes(reservationId));
    expect(stray).toMatchObject([{ turnId: second }]);
    const given = await until(() =>
      asked.settle.find(({ reservationId }) => reservationId === stray[0]?.reservationId),
    );
    expect(given.outcome).toEqual({ kind: 'not_dispatched', reason: 'never_begun' });
  });

  it('retains its reservation when its request is repeated before the driver takes it', async () => {
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    let accepted = 0;
    const agent = world.process({
      failpoint: (name) => (name === 'agent.turn.accepted' && ++accepted === 2 ? held : Promise.resolve()),
    });
    const { sessionId } = await submitTo(agent, { address: newAddress() });
    const [start] = (await world.ended(sessionId)).filter(({ type }) => type === 'ModelCallStarted');
    await until(() =>
      asked.settle.some(({ reservationId }) => reservationId === start?.data['reservationId']),
    );
    asked.settle.length = 0;
    const first = submitTo(agent, { sessionId }, 'hi', { idempotencyKey: 'once' });
    await until(() => accepted === 2);
    const again = await submitTo(agent, { sessionId }, 'hi', { idempotencyKey: 'once' });
    release();
    expect((await first).turnId).toBe(again.turnId);
    await world.ended(sessionId, 2);
    await until(() => asked.settle.length > 0);
    expect(asked.settle.map(({ outcome }) => outcome.kind)).toEqual(['used']);
  });
});
