import { textCause, textOf } from '@antiphon/contracts/causes';
import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { createTestDatabase } from '@antiphon/testing';
import { framesOf, initialCursor } from '@antiphon/contracts/agent';
import type { Frame, SessionEvent } from '@antiphon/contracts/agent';
import { ModelFailure } from '@antiphon/providers-domain';
import type { ModelFailureDetails } from '@antiphon/providers-domain';
import { conflict, rejected, transient } from '@antiphon/kernel';
import {
  createAgentWorld,
  newAddress,
  submitTo,
  testConfig,
  until,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { asksFor, says, streams, USAGE } from '@antiphon/agent-features/testing/test-model';

jest.setTimeout(30_000);

let world: AgentWorld;
let agent: TestProcess;
let withFallback: TestProcess;
let defaults: AgentWorld['responders'];

beforeAll(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  agent = world.process();
  withFallback = world.process({ config: testConfig({ fallback: { provider: 'second', model: 'n' } }) });
  defaults = { ...world.responders };
});
beforeEach(() => {
  world.model.reply = streams('hello ', 'there');
  world.model.requests.length = 0;
  for (const asked of Object.values(world.responders.asked)) asked.length = 0;
  Object.assign(world.responders, defaults);
});
afterAll(() => world.close());

const fails = (details: Partial<ModelFailureDetails>) => () =>
  Promise.reject(
    new ModelFailure({
      reason: 'provider_error',
      message: 'overloaded',
      dispatched: true,
      retryable: true,
      ...details,
    }),
  );
/** Runs one turn to its end and returns its events. */
const turn = async (process = agent, content = 'hi') => {
  const { sessionId } = await submitTo(process, { address: newAddress() }, content);
  const events = await world.ended(sessionId);
  return {
    sessionId,
    events,
    last: events.at(-1),
    data: (type: string) => events.find((e) => e.type === type)?.data,
  };
};
type Events = Awaited<ReturnType<typeof turn>>['events'];
/** Returns the settlements of one turn's attempts. Other turns may settle at any time. */
const settledOf = (events: Events) => {
  const ours = new Set(events.map(({ data }) => data['reservationId']));
  return world.responders.asked.settle.filter(({ reservationId }) => ours.has(reservationId));
};
const reservedOf = (sessionId: string) =>
  world.responders.asked.reserve.filter((request) => request.sessionId === sessionId);
const framesFrom = (events: Events): Frame[] => {
  let cursor = initialCursor;
  return events.flatMap((event) => {
    const framed = framesOf(cursor, event as unknown as SessionEvent);
    cursor = framed.cursor;
    return framed.frames;
  });
};

describe('a long answer', () => {
  const parts = (bytes: number): string[] =>
    Array.from({ length: bytes / 500 }, () => `${'word '.repeat(99)}\u5b57 "`);

  it('is kept whole up to the size of its event, with the frames that clients have', async () => {
    const deltas = parts(700_000);
    world.model.reply = streams(...deltas);
    const { events, last, data } = await turn();
    expect(last?.type).toBe('TurnCompleted');
    expect(data('ModelCallCompleted')?.['text']).toBe(deltas.join(''));
    const texts = framesFrom(events).filter(({ event }) => event === 'text');
    expect(texts.map((frame) => frame.data).join('')).toBe(deltas.join(''));
  });

  it('fails its turn beyond that, also if its provider ends it at once, and settles its usage', async () => {
    world.model.reply = streams(...parts(900_000));
    const { last, data } = await turn();
    expect(data('ModelCallAborted')?.['usage']).toMatchObject(USAGE);
    expect([last?.type, last?.data]).toEqual([
      'TurnFailed',
      expect.objectContaining({ cause: { kind: 'answer_too_long' } }),
    ]);
  });
});

describe('a model call', () => {
  it('sends the context in its order and settles its usage', async () => {
    world.responders.assemble = async () => ({
      soul: { text: '# Soul', tokens: 2 },
      facts: [
        {
          factId: '00000000-0000-4000-8000-000000000001',
          subject: 'user',
          predicate: 'name',
          object: 'Ada',
          confidence: 1,
          learnedAt: '2026-11-21T00:00:00.000Z',
          supersededAt: null,
          sourceEventId: '00000000-0000-4000-8000-000000000002',
        },
      ],
      tokens: 10,
      version: 0,
    });
    const { sessionId, data, events } = await turn(agent, 'who am I?');
    const [request] = world.model.requests;
    expect(request).toMatchObject({ provider: 'first', model: 'm', maxOutputTokens: 1_000, streaming: true });
    expect(request?.system).toBe('# Soul\n\nBe kind.');
    expect(request?.messages).toEqual([
      {
        role: 'user',
        text: 'who am I?',
        context: expect.stringMatching(/^Facts .*\n- user \| name \| Ada$/),
      },
    ]);
    expect(request?.tools).toEqual([
      { name: 'echo', description: 'returns its input', inputSchema: { type: 'object' } },
    ]);
    expect(data('ModelCallCompleted')).toMatchObject({
      text: 'hello there',
      frames: [
        { kind: 'text', length: 6 },
        { kind: 'text', length: 5 },
      ],
      usage: { ...USAGE, estimated: false },
      costMicroUsd: 20,
    });
    await until(() => settledOf(events).length === 1);
    expect(reservedOf(sessionId)).toMatchObject([
      { attempt: 1, inputBound: 100, maxOutputTokens: 1_000, agentId: 'main' },
    ]);
    expect(settledOf(events)).toMatchObject([
      {
        reservationId: reservedOf(sessionId)[0]?.reservationId,
        outcome: { kind: 'used', ...USAGE, estimated: false },
      },
    ]);
  });

  it('is capped at the budget that metering grants', async () => {
    world.responders.reserve = async ({ reservationId }) => ({
      granted: true,
      reservationId,
      maxOutputTokens: 300,
      price: null,
    });
    const { data } = await turn();
    expect(world.model.requests[0]?.maxOutputTokens).toBe(300);
    expect(data('ModelCallCompleted')).toMatchObject({ costMicroUsd: null });
  });

  it('costs its bound, marked as estimated, if the provider reports no usage', async () => {
    world.model.reply = async () => ({ ...says('hm'), usage: null });
    const { data } = await turn();
    expect(data('ModelCallCompleted')).toMatchObject({
      text: 'hm',
      frames: [{ kind: 'text', length: 2 }],
      usage: { inputTokens: 100, outputTokens: 1, estimated: true },
    });
  });

  it('never splits a character between frames', async () => {
    world.model.reply = streams('\ud83d', '\ude00', '!');
    const { events, data } = await turn();
    expect(data('ModelCallCompleted')).toMatchObject({ text: '😀!' });
    expect(framesFrom(events).filter(({ event }) => event === 'text')).toMatchObject([
      { data: '😀' },
      { data: '!' },
    ]);
  });

  it('that exceeds the budget reaches no provider', async () => {
    const standing = { unit: 'tokens', scope: 'session', used: '9500', limit: '10000' };
    const cause = { kind: 'budget_exceeded', ...standing } as const;
    world.responders.reserve = async () => ({
      granted: false,
      scope: 'session',
      unit: 'tokens',
      used: 9_500,
      limit: 10_000,
      message: textOf(cause),
      cause,
    });
    const { last, data, events } = await turn();
    expect(world.model.requests).toEqual([]);
    expect(data('ModelCallAborted')).toMatchObject({ reason: 'budget_refused', dispatched: false, cause });
    expect(last).toMatchObject({ type: 'TurnFailed', data: { code: 'BUDGET.EXCEEDED', cause } });
    expect(framesFrom(events).map(({ event }) => event)).toEqual(['accepted', 'error', 'done']);
    expect(settledOf(events)).toEqual([]);
  });

  it('waits for unavailable services, and fails on a permanent error', async () => {
    let asked = 0;
    world.responders.assemble = async (request) => {
      if (++asked < 3) throw transient('MEMORY.BUSY', 'memory is busy');
      return defaults.assemble(request);
    };
    expect((await turn()).last).toMatchObject({ type: 'TurnCompleted' });
    world.responders.assemble = async () => {
      throw rejected('MEMORY.NO', 'memory will not');
    };
    const { last, data } = await turn();
    expect(data('ModelCallAborted')).toMatchObject({ reason: 'dependency_failed', dispatched: false });
    expect(last).toMatchObject({
      type: 'TurnFailed',
      data: { code: 'TURN.DEPENDENCY_FAILED', cause: textCause('memory will not') },
    });
  });
});

describe('a reservation that ended before its call was made', () => {
  it('is not used: the next attempt has another one', async () => {
    const granting = world.responders.reserve;
    const ended = new Set<string>();
    world.responders.reserve = async (request) => {
      if (ended.size === 0) ended.add(request.reservationId);
      if (ended.has(request.reservationId))
        throw conflict('METERING.RESERVATION_ENDED', 'it was given back', { data: { status: 'released' } });
      return granting(request);
    };
    const { events, last } = await turn();
    expect(last).toMatchObject({ type: 'TurnCompleted' });
    const [first, second] = events.filter(({ type }) => type === 'ModelCallStarted');
    expect(ended.has(first?.data['reservationId'] as string)).toBe(true);
    expect(second?.data).toMatchObject({ attempt: 2 });
    expect(events.find(({ type }) => type === 'ModelCallAborted')?.data).toMatchObject({ dispatched: false });
  });
});

describe('a provider that fails', () => {
  it('is tried three times, each time with its own reservation', async () => {
    world.model.reply = fails({
      reason: 'provider_unreachable',
      message: 'provider unreachable',
      dispatched: false,
    });
    const { sessionId, events, last } = await turn();
    expect(
      events.filter(({ type }) => type === 'ModelCallStarted').map(({ data }) => data['tryNumber']),
    ).toEqual([1, 2, 3]);
    expect(last).toMatchObject({
      type: 'TurnFailed',
      data: { code: 'PROVIDER.UNREACHABLE', cause: textCause('provider unreachable') },
    });
    await until(() => settledOf(events).length === 3);
    expect(new Set(reservedOf(sessionId).map(({ reservationId }) => reservationId)).size).toBe(3);
    expect(settledOf(events)[0]).toMatchObject({ outcome: { kind: 'not_dispatched' } });
  });

  it('voids the text of a failed attempt', async () => {
    world.model.reply = async (request, sink, call) => {
      if (call > 1) return streams('whole')(request, sink, call);
      sink.onText('half');
      return fails({ usage: { inputTokens: 7, outputTokens: 1 } })();
    };
    const { events, data } = await turn();
    expect(data('ModelCallAborted')).toMatchObject({
      text: 'half',
      usage: { inputTokens: 7, estimated: false },
    });
    const frames = framesFrom(events);
    expect(frames.map(({ event }) => event)).toEqual([
      'accepted',
      'text',
      'restart',
      'text',
      'usage',
      'done',
    ]);
    expect(frames[2]?.data).toEqual({ offset: frames[1]?.offset });
  });

  it('is charged with the input that it reported, and with the limit of the output', async () => {
    const reportedInput = { inputTokens: 900, cacheReadTokens: 800 };
    world.model.reply = async (_request, sink) => {
      sink.onText('half');
      return fails({ retryable: false, reportedInput })();
    };
    const { events, data } = await turn();
    const usage = { ...reportedInput, outputTokens: 1_000, estimated: true };
    expect(data('ModelCallAborted')).toMatchObject({ usage });
    await until(() => settledOf(events).length === 1);
    expect(settledOf(events)[0]).toMatchObject({ outcome: { kind: 'used', ...usage } });
  });

  it('gets no request before its retry-after time', async () => {
    world.model.reply = (request, sink, call) =>
      call === 1 ? fails({ retryAfterMs: 700 })() : streams('ok')(request, sink, call);
    const { events } = await turn();
    const at = (type: string) => Date.parse(events.find((event) => event.type === type)?.recordedAt ?? '');
    const again = Date.parse(events.filter(({ type }) => type === 'ModelCallStarted')[1]?.recordedAt ?? '');
    expect(again - at('ModelCallAborted')).toBeGreaterThanOrEqual(690);
  });

  it('gets no second request after a permanent refusal', async () => {
    world.model.reply = fails({ message: 'invalid x-api-key', retryable: false, status: 401 });
    const { last } = await turn();
    expect(world.model.requests).toHaveLength(1);
    expect(last).toMatchObject({ data: { code: 'PROVIDER.ERROR', cause: textCause('invalid x-api-key') } });
  });

  it('is replaced by the fallback', async () => {
    world.model.reply = (request, sink, call) =>
      request.provider === 'first'
        ? fails({ retryable: false })()
        : streams('from the second')(request, sink, call);
    const { data, last } = await turn(withFallback);
    expect(world.model.requests.map(({ provider, model }) => `${provider}/${model}`)).toEqual([
      'first/m',
      'second/n',
    ]);
    expect(data('ModelCallCompleted')).toMatchObject({ provider: 'second', text: 'from the second' });
    expect(last?.type).toBe('TurnCompleted');
  });

  it('is not called again after a response that cannot be stored', async () => {
    const bottom: Record<string, unknown> = {};
    let deep = bottom;
    for (let level = 0; level < 200; level++) deep = deep['a'] = {} as Record<string, unknown>;
    world.model.reply = async () => asksFor({ name: 'echo', input: bottom as never });
    const { last } = await turn();
    expect(world.model.requests).toHaveLength(3);
    expect(last).toMatchObject({ data: { code: 'PROVIDER.PROTOCOL' } });
  });
});
