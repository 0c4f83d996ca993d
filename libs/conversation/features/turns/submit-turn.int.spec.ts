import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { ATTEMPT_SPAN } from '@antiphon/contracts/agent';
import { renderMetrics, TURN_STAGES } from '@antiphon/observability';
import { createTestDatabase, type TestDatabase } from '@antiphon/testing';
import pg from 'pg';
import {
  createAgentWorld,
  newAddress,
  submitTo,
  until,
  WORKSPACE,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { hangs, says, streams } from '@antiphon/agent-features/testing/test-model';

jest.setTimeout(30_000);

let database: TestDatabase;
let world: AgentWorld;
let agent: TestProcess;

beforeAll(async () => {
  database = await createTestDatabase();
  world = await createAgentWorld(database, process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  agent = world.process();
  await agent.started;
});
beforeEach(() => {
  world.model.reply = streams('hello ', 'there');
  world.model.requests.length = 0;
});
afterAll(() => world.close());

const submit = (...args: Parameters<typeof submitTo> extends [unknown, ...infer Rest] ? Rest : never) =>
  submitTo(agent, ...args);

describe('a message to an address without a session', () => {
  it('starts a session, and its turn completes', async () => {
    const accepted = await submit({ address: newAddress() });
    expect(accepted).toMatchObject({
      agentId: 'main',
      version: 3,
      acceptedOffset: ATTEMPT_SPAN,
      joined: false,
    });
    await world.ended(accepted.sessionId);
    expect(await world.types(accepted.sessionId)).toEqual([
      'SessionStarted',
      'TurnRequested',
      'ModelCallStarted',
      'ModelCallCompleted',
      'TurnCompleted',
    ]);
  });

  it('is measured in each stage', async () => {
    const count = async (): Promise<number[]> => {
      const { text } = await renderMetrics();
      const stage = (name: string) =>
        new RegExp(`^antiphon_turn_stage_seconds_count\\{stage="${name}"\\} (.*)$`, 'm');
      return TURN_STAGES.agent.map((name) => Number(stage(name).exec(text)?.[1] ?? 0));
    };
    const before = await count();
    const { sessionId } = await submit({ address: newAddress() });
    await world.ended(sessionId);
    await until(async () => (await count()).every((times, index) => times > (before[index] ?? 0)));
  });

  // @shows F5
  it('is followed by a turn in the same session with both messages in its context', async () => {
    const target = { address: newAddress() };
    const first = await submit(target, 'I am Ada');
    await world.ended(first.sessionId);
    expect((await submit(target, 'who am I?')).sessionId).toBe(first.sessionId);
    await world.ended(first.sessionId, 2);
    expect(world.model.requests[1]?.messages).toEqual([
      { role: 'user', text: 'I am Ada' },
      { role: 'assistant', text: 'hello there', toolCalls: [] },
      { role: 'user', text: 'who am I?' },
    ]);
  });

  it('creates one session even if two arrive at once', async () => {
    const target = { address: newAddress() };
    const both = await Promise.all([submit(target, 'one'), submit(target, 'two')]);
    expect(both[0]?.sessionId).toBe(both[1]?.sessionId);
    await world.ended(both[0]?.sessionId ?? '', 2);
  });

  // @shows F2
  it('separates addresses, also with delimiters in their parts', async () => {
    const base = { agentId: 'main', account: 'c', peer: 'd' };
    const one = await submit({ address: { ...base, channel: 'a:b' } });
    const other = await submit({ address: { ...base, channel: 'a', account: 'b:c' } });
    expect(one.sessionId).not.toBe(other.sessionId);
    await Promise.all([world.ended(one.sessionId), world.ended(other.sessionId)]);
  });

  it('is refused for an unknown agent', async () => {
    await expect(submit({ address: newAddress('missing-agent') })).rejects.toMatchObject({
      code: 'AGENT.NOT_FOUND',
    });
    await expect(submit({ sessionId: randomUUID() })).rejects.toMatchObject({ code: 'SESSION.NOT_FOUND' });
  });

  it('is stored in a form that the log accepts', async () => {
    const address = { ...newAddress(), channel: 'odd\ud800' };
    const { sessionId } = await submit({ address }, 'a\0b\ud800');
    const [started, requested] = await world.ended(sessionId);
    expect(started?.data['sessionKey']).toContain('odd%EF%BF%BD');
    expect(requested?.data['content']).toBe('a\uFFFDb\uFFFD');
  });
});

describe('turns of one session', () => {
  // @shows U45
  it('run one after another in the order of acceptance', async () => {
    const { sessionId } = await submit({ address: newAddress() }, 'first');
    await Promise.all(Array.from({ length: 10 }, (_, index) => submit({ sessionId }, `turn ${index}`)));
    const events = await world.ended(sessionId, 11);
    const turns = events.filter(({ type }) => type === 'TurnRequested').map(({ data }) => data['turnId']);
    const worked = events.filter(({ type }) => type === 'ModelCallStarted' || type === 'TurnCompleted');
    expect(worked.map(({ type, data }) => [type, data['turnId']])).toEqual(
      turns.flatMap((turnId) => [
        ['ModelCallStarted', turnId],
        ['TurnCompleted', turnId],
      ]),
    );
  });

  it('are queued in the log behind the open one', async () => {
    let release: (answer: ReturnType<typeof says>) => void = () => undefined;
    world.model.reply = () => new Promise((resolve) => (release = resolve));
    const first = await submit({ address: newAddress() });
    const second = await submit({ sessionId: first.sessionId });
    expect(second.acceptedOffset).toBeNull();
    await until(() => world.model.requests.length === 1);
    release(says('one'));
    await until(() => world.model.requests.length === 2);
    release(says('two'));
    await world.ended(first.sessionId, 2);
  });

  it('run concurrently with those of other sessions', async () => {
    let atWork = 0;
    world.model.reply = hangs('', () => atWork++);
    const accepted = await Promise.all(Array.from({ length: 10 }, () => submit({ address: newAddress() })));
    await until(() => atWork === 10);
    await Promise.all(
      accepted.map(({ sessionId }) =>
        agent.runtime.cancelTurn({ workspace: WORKSPACE, sessionId, caller: 'spec' }),
      ),
    );
    await Promise.all(accepted.map(({ sessionId }) => world.ended(sessionId)));
  });
});

describe('the statements of a turn', () => {
  const calls: string[] = [];
  const record = <T extends object>(target: T, names: readonly string[]): T =>
    new Proxy(target, {
      get: (from, name) => {
        const value: unknown = Reflect.get(from, name, from);
        if (typeof value !== 'function') return value;
        return (...args: unknown[]): unknown => {
          if (names.includes(String(name))) calls.push(String(name));
          return value.apply(from, args) as unknown;
        };
      },
    });
  const take = (): string[] => calls.splice(0);

  it('are its two appends in a session that the process knows', async () => {
    const { runtime, started } = world.process({
      store: record(world.store, ['append', 'readStream', 'readStreamPage', 'streamVersion']),
      leases: record(world.leases, ['acquire']),
    });
    await started;
    const ask = async (target: ReturnType<typeof newAddress>, turns: number): Promise<string> => {
      const request = { workspace: WORKSPACE, target: { address: target }, content: 'hi', caller: 'spec' };
      const { sessionId } = await runtime.submitTurn(request);
      await world.ended(sessionId, turns);
      return sessionId;
    };
    const address = newAddress();
    const sessionId = await ask(address, 1);
    take();
    expect(await ask(address, 2)).toBe(sessionId);
    expect(take()).toEqual(['append', 'append']);
    // The first turn of an address reads the binding of its key, and takes its lease in the append.
    await ask(newAddress(), 1);
    expect(take()).toEqual(['readStream', 'append', 'append']);
  });

  it('include one more round for the first new session after the first epoch of leases has risen', async () => {
    // As after a restore, or after leases of a higher epoch were deleted.
    const admin = new pg.Client({ connectionString: database.url });
    await admin.connect();
    await admin.query('update lease_floor set epoch = epoch + 7');
    await admin.end();
    const { runtime, started } = world.process({ store: record(world.store, ['append']) });
    await started;
    for (const appends of [3, 2]) {
      take();
      const request = {
        workspace: WORKSPACE,
        target: { address: newAddress() },
        content: 'hi',
        caller: 'spec',
      };
      const { sessionId } = await runtime.submitTurn(request);
      await world.ended(sessionId);
      expect(take()).toHaveLength(appends);
    }
  });

  it('include a second attempt after another process bound the key to a new session', async () => {
    const target = { address: newAddress() };
    const first = await submit(target);
    await world.ended(first.sessionId);
    const other = world.process();
    const { sessionId } = await other.runtime.startSession({ workspace: WORKSPACE, target, caller: 'spec' });
    const second = await submit(target);
    expect(second.sessionId).toBe(sessionId);
    await world.ended(sessionId);
    expect(await world.types(first.sessionId)).toHaveLength(5);
  });
});

describe('an idempotency key', () => {
  it('joins the turn that was accepted with it', async () => {
    const target = { address: newAddress() };
    const idempotencyKey = randomUUID();
    const first = await submit(target, 'hi', { idempotencyKey });
    const again = await submit(target, 'hi', { idempotencyKey });
    expect(again).toEqual({ ...first, joined: true });
    await world.ended(first.sessionId);
    expect((await world.types(first.sessionId)).filter((type) => type === 'TurnRequested')).toHaveLength(1);
  });

  it('joins it even if both arrive at once', async () => {
    const target = { address: newAddress() };
    const idempotencyKey = randomUUID();
    const answers = await Promise.all([1, 2, 3].map(() => submit(target, 'hi', { idempotencyKey })));
    expect(new Set(answers.map(({ turnId }) => turnId)).size).toBe(1);
    expect(answers.filter(({ joined }) => !joined)).toHaveLength(1);
    await world.ended(answers[0]?.sessionId ?? '');
  });

  it('is refused for another body', async () => {
    const target = { address: newAddress() };
    const idempotencyKey = randomUUID();
    const { sessionId } = await submit(target, 'hi', { idempotencyKey });
    await expect(submit(target, 'ho', { idempotencyKey })).rejects.toMatchObject({
      kind: 'conflict',
      code: 'LOG.IDEMPOTENCY_CONFLICT',
    });
    await world.ended(sessionId);
  });
});

describe('frames', () => {
  it('arrive live with the offsets of the log', async () => {
    const { sessionId } = await submit({ address: newAddress() });
    await world.ended(sessionId);
    const frames = world.watch(sessionId);
    await world.nats.connection.flush();
    await submit({ sessionId });
    await until(() => frames.some(({ event }) => event === 'done'));
    expect(frames.map(({ event, offset, prev }) => [event, offset - 2 * ATTEMPT_SPAN, prev])).toEqual([
      ['accepted', 0, ATTEMPT_SPAN + 4],
      ['text', 1, 2 * ATTEMPT_SPAN],
      ['text', 2, 2 * ATTEMPT_SPAN + 1],
      ['usage', 3, 2 * ATTEMPT_SPAN + 2],
      ['done', 4, 2 * ATTEMPT_SPAN + 3],
    ]);
  });
});

describe('the key of an agent', () => {
  it('uses only sessions of this agent and its descendants', async () => {
    const address = newAddress();
    const { sessionId } = await submitTo(agent, { address });
    const common = { workspace: WORKSPACE, caller: 'key/k', content: 'hello' };
    const { runtime } = agent;
    const attempts = (callerAgent: string) => [
      () => runtime.submitTurn({ ...common, callerAgent, target: { sessionId } }),
      () => runtime.submitTurn({ ...common, callerAgent, target: { address } }),
      () => runtime.cancelTurn({ workspace: WORKSPACE, caller: 'key/k', callerAgent, sessionId }),
      () =>
        runtime.startSession({ workspace: WORKSPACE, caller: 'key/k', callerAgent, target: { sessionId } }),
      () => runtime.forkSession({ workspace: WORKSPACE, caller: 'key/k', callerAgent, sessionId }),
    ];
    for (const attempt of attempts('sibling'))
      await expect(attempt()).rejects.toMatchObject({ kind: 'forbidden', code: 'AGENT.NOT_ALLOWED' });
    for (const attempt of attempts(address.agentId).slice(0, 4)) await attempt();
  });
});
