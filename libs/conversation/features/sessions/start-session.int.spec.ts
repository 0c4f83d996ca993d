import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type { EventStore } from '@antiphon/event-store';
import { createTestDatabase } from '@antiphon/testing';
import {
  createAgentWorld,
  newAddress,
  submitTo,
  WORKSPACE,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';

jest.setTimeout(30_000);

let world: AgentWorld;
let agent: TestProcess;
beforeAll(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  agent = world.process();
});
afterAll(() => world.close());

type Target = Parameters<TestProcess['runtime']['startSession']>[0]['target'];
const start = (target: Target, idempotencyKey?: string) =>
  agent.runtime.startSession({
    workspace: WORKSPACE,
    target,
    caller: 'spec',
    ...(idempotencyKey ? { idempotencyKey } : {}),
  });

describe('a new session', () => {
  it('is bound to its address, and the previous session stays readable', async () => {
    const target = { address: newAddress() };
    const old = await submitTo(agent, target);
    await world.ended(old.sessionId);
    const fresh = await start(target);
    expect(fresh).toMatchObject({ agentId: 'main', previousSessionId: old.sessionId });
    const next = await submitTo(agent, target);
    expect(next.sessionId).toBe(fresh.sessionId);
    await world.ended(fresh.sessionId);
    expect(await world.types(old.sessionId)).toContain('TurnCompleted');
    expect((await world.events(fresh.sessionId))[0]?.data).toMatchObject({
      previousSessionId: old.sessionId,
    });
    expect(world.model.requests.at(-1)?.messages).toHaveLength(1);
  });

  it('is visible to every process at once', async () => {
    const other = world.process();
    const target = { address: newAddress() };
    const old = await submitTo(other, target);
    const fresh = await start(target);
    expect((await submitTo(other, target)).sessionId).toBe(fresh.sessionId);
    await Promise.all([world.ended(old.sessionId), world.ended(fresh.sessionId)]);
  });

  it('takes a second message while the commit of its first one has not returned', async () => {
    const [isCommitted, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let isFirst = true;
    const slow: EventStore['append'] = async (...args) => {
      const holds = isFirst && args[0].streams.some(({ streamId }) => streamId.startsWith('session-'));
      if (holds) isFirst = false;
      const result = await world.store.append(...args);
      if (!holds) return result;
      isCommitted.resolve();
      await release.promise;
      return result;
    };
    const store = new Proxy(world.store, {
      get: (target, name) => (name === 'append' ? slow : Reflect.get(target, name, target)),
    });
    const creator = world.process({ store });
    const target = { address: newAddress() };
    const first = submitTo(creator, target, 'one');
    await isCommitted.promise;
    // The log has the session, and the process that creates it does not know so yet.
    const second = submitTo(creator, target, 'two');
    await submitTo(agent, target, 'three');
    release.resolve();
    const ids = (await Promise.all([first, second])).map(({ sessionId }) => sessionId);
    expect(new Set(ids).size).toBe(1);
    await world.ended(ids[0] ?? '', 3);
  });

  it('can follow a given session, or be the first of an address', async () => {
    const first = await start({ address: newAddress() });
    expect(first.previousSessionId).toBeNull();
    const second = await start({ sessionId: first.sessionId });
    expect(second).toMatchObject({ previousSessionId: first.sessionId, sessionKey: first.sessionKey });
    await expect(start({ sessionId: randomUUID() })).rejects.toMatchObject({ code: 'SESSION.NOT_FOUND' });
    await expect(start({ address: newAddress('missing-agent') })).rejects.toMatchObject({
      code: 'AGENT.NOT_FOUND',
    });
  });

  it('is created once per idempotency key', async () => {
    const target = { address: newAddress() };
    const key = randomUUID();
    const [one, two] = await Promise.all([start(target, key), start(target, key)]);
    expect(two).toEqual(one);
    await expect(start({ address: newAddress() }, key)).rejects.toMatchObject({
      code: 'LOG.IDEMPOTENCY_CONFLICT',
    });
  });

  it('is bound once by each concurrent request', async () => {
    const target = { address: newAddress() };
    const made = await Promise.all([1, 2, 3].map(() => start(target)));
    const previous = made.map(({ previousSessionId }) => previousSessionId);
    expect(new Set(previous).size).toBe(3);
  });
});
