import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { sessionLease, sessionStream } from '@antiphon/contracts/agent';
import type { NewEvent } from '@antiphon/event-store';
import { acrossWorkspaces } from '@antiphon/database';
import { createTestDatabase } from '@antiphon/testing';
import {
  createAgentWorld,
  newAddress,
  submitTo,
  until,
  WORKSPACE,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld } from '@antiphon/agent-features/testing/agent-world';
import { hangs, says, streams } from '@antiphon/agent-features/testing/test-model';

jest.setTimeout(30_000);

let world: AgentWorld;
beforeAll(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
});
beforeEach(() => {
  world.model.reply = streams('hello');
  world.model.requests.length = 0;
});
// A process without notifications would take over sessions of the next spec.
afterEach(() => world.stopAll());
afterAll(() => world.close());

const epochs = async (sessionId: string) =>
  (await world.events(sessionId)).flatMap(({ metadata }) => metadata.epoch ?? []);

describe('two agent processes', () => {
  it('drive a session one at a time', async () => {
    const [one, other] = [world.process(), world.process()];
    const { sessionId } = await submitTo(one, { address: newAddress() });
    await Promise.all(
      Array.from({ length: 6 }, (_, n) => submitTo(n % 2 ? one : other, { sessionId }, `${n}`)),
    );
    const events = await world.ended(sessionId, 7);
    expect(events.filter(({ type }) => type === 'ModelCallStarted')).toHaveLength(7);
    expect(new Set(await epochs(sessionId))).toEqual(new Set([1]));
  });

  it('name the one that drives the session in their replies', async () => {
    const [one, other] = [world.process(), world.process()];
    const first = await submitTo(one, { address: newAddress() });
    await world.ended(first.sessionId);
    const second = await submitTo(other, { sessionId: first.sessionId });
    const { owner } = one.runtime.services;
    expect([first.driver, second.driver]).toEqual([owner, owner]);
    await world.ended(first.sessionId, 2);
  });

  it('create one session for an address that writes to both at once', async () => {
    const [one, other] = [world.process(), world.process()];
    const target = { address: newAddress() };
    const both = await Promise.all([submitTo(one, target), submitTo(other, target)]);
    expect(both[0]?.sessionId).toBe(both[1]?.sessionId);
    await world.ended(both[0]?.sessionId ?? '', 2);
  });

  it('hand a session over when one of them drains', async () => {
    const one = world.process();
    const { sessionId } = await submitTo(one, { address: newAddress() });
    await world.ended(sessionId);
    await one.runtime.stop();
    const other = world.process();
    await submitTo(other, { sessionId });
    await world.ended(sessionId, 2);
    expect(await epochs(sessionId)).toEqual([1, 1, 1, 1, 1, 2, 2, 2, 2]);
  });

  it('find events in their sessions without a notification', async () => {
    const one = world.process();
    const { sessionId } = await submitTo(one, { address: newAddress() });
    await world.ended(sessionId);
    const mute = world.process({ nats: { ...world.nats, isConnected: () => false } });
    expect((await submitTo(mute, { sessionId })).acceptedOffset).toBeNull();
    await world.ended(sessionId, 2);
    expect(new Set(await epochs(sessionId))).toEqual(new Set([1]));
    // It would take over sessions of later specs without sending frames.
    await mute.runtime.stop();
  });

  it('release an idle session', async () => {
    const one = world.process({ times: { leaseMs: 3_000, idleMs: 100 } });
    const { sessionId } = await submitTo(one, { address: newAddress() });
    await world.ended(sessionId);
    await until(async () => {
      const { rows } = await acrossWorkspaces(world.pool).query<{ owner: string | null }>(
        'select owner from leases where name = $1',
        [sessionLease(sessionId)],
      );
      return rows[0]?.owner === null;
    });
    await submitTo(one, { sessionId });
    await world.ended(sessionId, 2);
  });
});

describe('a driver that was suspended while another took over', () => {
  it('appends no event, and its frames carry the lower epoch', async () => {
    let answer: (text: ReturnType<typeof says>) => void = () => undefined;
    let say: (delta: string) => void = () => undefined;
    world.model.reply = (_request, sink) => {
      say = (delta) => sink.onText(delta);
      sink.onText('slow ');
      return new Promise((resolve) => (answer = resolve));
    };
    // It renews no lease and polls no session, as if suspended, so it does not notice the loss.
    const asleep = world.process({ times: { leaseMs: 3_600_000, pollMs: 3_600_000 } });
    const { sessionId } = await submitTo(asleep, { address: newAddress() });
    await until(() => world.model.requests.length === 1);
    const frames = world.watch(sessionId);
    await world.nats.connection.flush();

    const [sleeperSays, sleeperAnswers] = [say, answer];
    world.model.reply = streams('quick');
    world.process();
    await world.handleExit(asleep);
    await world.ended(sessionId);
    await until(() => frames.some(({ event }) => event === 'done'));

    const before = await world.events(sessionId);
    sleeperSays('and late');
    await until(() => frames.some(({ data }) => data === 'and late'));
    sleeperAnswers(says('slow and late'));
    await until(() => asleep.runtime.working() === 0);
    expect(await world.events(sessionId)).toEqual(before);
    expect(before.map(({ type }) => type)).toEqual([
      'SessionStarted',
      'TurnRequested',
      'ModelCallStarted',
      'ModelCallAborted',
      'ModelCallStarted',
      'ModelCallCompleted',
      'TurnCompleted',
    ]);
    expect(before[3]?.data).toMatchObject({ reason: 'driver_lost', dispatched: true, usage: null });
    const epochOf = (data: string) => frames.find((frame) => frame.data === data)?.epoch ?? 0;
    expect(epochOf('and late')).toBeLessThan(epochOf('quick'));
  });

  it('is refused by the fence of the log', async () => {
    const one = world.process();
    const { sessionId } = await submitTo(one, { address: newAddress() });
    await world.ended(sessionId);
    await world.handleExit(one);
    const taken = await world.leases.acquire(WORKSPACE, sessionLease(sessionId), 'other', 5_000);
    expect(taken).toMatchObject({ acquired: true, lease: { epoch: 2 } });
    const { acceptedOffset } = await submitTo(one, { sessionId });
    expect(acceptedOffset).toBeNull();
    expect((await world.types(sessionId)).at(-1)).toBe('TurnRequested');
  });
});

describe('a process that shuts down', () => {
  it('lets its turns end', async () => {
    let answer: (text: ReturnType<typeof says>) => void = () => undefined;
    world.model.reply = () => new Promise((resolve) => (answer = resolve));
    const one = world.process();
    const { sessionId } = await submitTo(one, { address: newAddress() });
    await until(() => world.model.requests.length === 1);
    const stopped = one.runtime.stop();
    answer(says('done'));
    await stopped;
    expect((await world.types(sessionId)).at(-1)).toBe('TurnCompleted');
  });

  it('stops a turn at its deadline, stores its text and hands it over', async () => {
    world.model.reply = hangs('half');
    const one = world.process({ times: { leaseMs: 3_000, drainMs: 100 } });
    const { sessionId } = await submitTo(one, { address: newAddress() });
    await until(() => world.model.requests.length === 1);
    world.model.reply = streams('whole');
    await one.runtime.stop();
    const last = (await world.events(sessionId)).at(-1);
    expect(last).toMatchObject({ type: 'ModelCallAborted', data: { reason: 'driver_lost', text: 'half' } });
    world.process();
    expect((await world.ended(sessionId)).at(-1)?.type).toBe('TurnCompleted');
  });

  it('takes no session over', async () => {
    world.model.reply = hangs('half');
    const one = world.process({ times: { leaseMs: 3_000, drainMs: 100 } });
    const { sessionId } = await submitTo(one, { address: newAddress() });
    await until(async () => {
      const text = 'select from agent_sessions where session_id = $1 and open_turns > 0';
      return (await acrossWorkspaces(world.pool).query(text, [sessionId])).rowCount === 1;
    });
    await one.runtime.stop();
    await one.runtime.takeOver();
    const taken = await world.leases.acquire(WORKSPACE, sessionLease(sessionId), 'other', 5_000);
    expect(taken).toMatchObject({ acquired: true });
  });

  it('leaves queued turns to the next process', async () => {
    world.model.reply = hangs('half');
    const one = world.process();
    const { sessionId } = await submitTo(one, { address: newAddress() });
    await submitTo(one, { sessionId }, 'second');
    await until(() => world.model.requests.length === 1);
    one.kill();
    await world.handleExit(one);
    world.model.reply = streams('again');
    world.process();
    const events = await world.ended(sessionId, 2);
    expect(events.filter(({ type }) => type === 'TurnCompleted')).toHaveLength(2);
  });
});

describe('an accepted turn without a driver', () => {
  it('is found in the log and driven without a notification', async () => {
    const one = world.process();
    const { sessionId } = await submitTo(one, { address: newAddress() });
    await world.ended(sessionId);
    await one.runtime.stop();
    const turnId = randomUUID();
    const data = { turnId, content: 'is the agent there', requestedAt: new Date().toISOString() };
    const requested: NewEvent = {
      ...{ eventId: randomUUID(), type: 'TurnRequested', schemaVersion: 1, data },
      metadata: { correlationId: 'spec', service: 'agent' },
    };
    const streams = [
      { streamId: sessionStream(sessionId), expectedVersion: 'any' as const, events: [requested] },
    ];
    await world.store.append({ workspace: WORKSPACE, streams });
    world.process();
    world.process();
    const events = await world.ended(sessionId, 2);
    expect(events.at(-1)).toMatchObject({ type: 'TurnCompleted', data: { turnId } });
    expect(events.filter(({ type }) => type === 'ModelCallStarted')).toHaveLength(2);
  });
});
