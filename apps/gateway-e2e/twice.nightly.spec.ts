import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { isTurnEnd } from '@antiphon/contracts/agent';
import { connectClient, textOf, type FrameStream, type SocketClient } from '@antiphon/testing/client';
import { startMockModel, type MockModel, type MockScript } from '@antiphon/testing/providers';
import { startStack, type TestStack } from '@antiphon/testing/stack';
import {
  CANARY_KEY,
  readEvents,
  twoVendorConfig,
  waitForAccepted,
  waitForValue,
} from './stack-under-test.js';

jest.setTimeout(120_000);

let script: MockScript;
let mock: MockModel;
let stack: TestStack;
/** Clients of two gateways, in a stack with two agents. */
let clients: readonly [SocketClient, SocketClient];

beforeAll(async () => {
  mock = await startMockModel((request) => script(request));
  stack = await startStack({
    config: twoVendorConfig(mock.url),
    env: { E2E_PROVIDER_KEY: CANARY_KEY },
    scale: { agent: 2, gateway: 2 },
    shareEngines: true,
  });
  const [one = '', other = ''] = stack.stackJson().urls.gateways;
  const open = (url: string) => connectClient(`${url.replace(/^http/, 'ws')}/ws`);
  clients = await Promise.all([open(one), open(other)]);
});
afterAll(async () => {
  await Promise.all((clients ?? []).map((client) => client.close()));
  await stack?.stop();
  await mock?.close();
});

const to = (peer: string, content: string, more: object = {}) => ({
  ...{ channel: 'test', account: 'twice', peer, content, agent: 'claude' },
  ...more,
});
const eventsOf = async (sessionId: string) =>
  (await readEvents(stack)).filter(({ streamId }) => streamId === `session-${sessionId}`);
const typesOf = async (sessionId: string) => (await eventsOf(sessionId)).map(({ type }) => type);
/** Removes the ids of the requests, which differ. */
const withoutIds = ({ frames }: Pick<FrameStream, 'frames'>) =>
  frames
    .filter(({ event }) => event !== 'accepted')
    .map(({ event, data, offset }) => ({ event, data, offset }));

/** Makes the provider hold each reply after its first piece until `release`. Counts the calls. */
const holdReplies = () => {
  const rest = Promise.withResolvers<void>();
  const held = { calls: 0, release: () => rest.resolve() };
  script = ({ user }) => {
    held.calls += 1;
    return {
      reply: { text: ['well ', `REST ${user}`] },
      before: (piece) => (piece.includes('REST') ? rest.promise : undefined),
    };
  };
  return held;
};

describe('a request that is repeated at two gateways at once', () => {
  it('makes one turn of a message with one key, whose frames both clients get', async () => {
    script = ({ user }) => ({ text: ['you said ', user] });
    await Promise.all(
      Array.from({ length: 12 }, async (_, nth) => {
        const message = to(`submit-${nth}`, `message ${nth}`, { idempotencyKey: randomUUID() });
        const streams = clients.map((client) => client.stream('chat.send', message));
        const [first, second] = await Promise.all(streams.map(waitForAccepted));
        expect(second).toEqual(first);
        await Promise.all(streams.map((stream) => stream.done()));
        expect(withoutIds(streams[0] as FrameStream)).toEqual(withoutIds(streams[1] as FrameStream));
        const types = await typesOf(first?.sessionId ?? '');
        expect(types.filter((type) => type === 'TurnRequested' || isTurnEnd(type))).toHaveLength(2);
      }),
    );
  });

  it('rejects a key with another message as a conflict', async () => {
    const key = { idempotencyKey: randomUUID() };
    await clients[0].stream('chat.send', to('conflict', 'this', key)).done();
    await expect(clients[1].stream('chat.send', to('conflict', 'that', key)).done()).rejects.toMatchObject({
      rpc: { code: -32009 },
    });
  });

  it('ends a cancelled turn once, and reports that end to later cancels', async () => {
    const held = holdReplies();
    const stream = clients[0].stream('chat.send', to('cancel', 'continue'));
    const { sessionId, turnId } = await waitForAccepted(stream);
    await stream.waitFor('text', ({ event }) => event === 'text');
    const cancel = (client: SocketClient) => client.call('session.cancel', { sessionId, turnId });
    const answers = await Promise.all([...clients, ...clients].map(cancel));
    expect(answers).toContainEqual({ cancelled: true });
    for (const answer of answers)
      expect([{ cancelled: true }, { cancelled: false, status: 'cancelled' }]).toContainEqual(answer);
    expect((await stream.done()).at(-1)?.data).toEqual({ turnId, status: 'cancelled' });
    held.release();
    expect(await Promise.all(clients.map(cancel))).toEqual(
      clients.map(() => ({ cancelled: false, status: 'cancelled' })),
    );
    expect((await typesOf(sessionId)).filter((type) => isTurnEnd(type))).toEqual(['TurnCancelled']);
  });

  it('ends a turn once when a cancel races with its completion, with one status at both gateways', async () => {
    script = ({ user }) => ({ text: [user] });
    await Promise.all(
      Array.from({ length: 12 }, async (_, nth) => {
        const stream = clients[0].stream('chat.send', to(`race-${nth}`, 'quick'));
        const { sessionId, turnId } = await waitForAccepted(stream);
        await Promise.all(clients.map((client) => client.call('session.cancel', { sessionId, turnId })));
        const { status } = (await stream.done()).at(-1)?.data as { status: string };
        const answers = await Promise.all(
          clients.map((client) => client.call('session.cancel', { sessionId, turnId })),
        );
        expect(answers).toEqual(clients.map(() => ({ cancelled: false, status })));
        expect((await typesOf(sessionId)).filter((type) => isTurnEnd(type))).toHaveLength(1);
      }),
    );
  });

  it('gives both clients the same frames on resume, during the turn and after it', async () => {
    const held = holdReplies();
    const stream = clients[0].stream('chat.send', to('resume', 'again'));
    const { sessionId } = await waitForAccepted(stream);
    await stream.waitFor('text', ({ event }) => event === 'text');
    // A second resume on one connection replaces the first.
    const resumed = clients.map((client) => client.stream('session.resume', { sessionId, after: 0 }));
    await Promise.all(resumed.map((follower) => follower.waitFor('text', ({ event }) => event === 'text')));
    held.release();
    const frames = await stream.done();
    for (const follower of resumed) {
      await follower.waitFor('done', ({ event }) => event === 'done');
      expect(withoutIds(follower)).toEqual(withoutIds({ frames }));
    }
    expect(textOf(frames)).toBe('well REST again');
    expect(held.calls).toBe(1);
  });
});

describe('queued turns', () => {
  it('run in the order of acceptance at any gateway; a cancelled one calls no model', async () => {
    const held = holdReplies();
    const first = clients[0].stream('chat.send', to('queue', 'one'));
    const { sessionId } = await waitForAccepted(first);
    const waiting: FrameStream[] = [];
    for (const [nth, content] of ['two', 'three', 'four'].entries()) {
      const client = clients[nth % 2] as SocketClient;
      const stream = client.stream('chat.send', to('queue', content));
      waiting.push(stream);
      await waitForAccepted(stream);
    }
    const ids = await Promise.all(waiting.map(waitForAccepted));
    const turnId = ids[1]?.turnId;
    expect(await clients[1].call('session.cancel', { sessionId, turnId })).toEqual({ cancelled: true });
    held.release();
    await Promise.all([first, ...waiting].map((stream) => stream.done()));

    const statuses = waiting.map(({ frames }) => (frames.at(-1)?.data as { status: string }).status);
    expect(statuses).toEqual(['completed', 'cancelled', 'completed']);
    const events = await eventsOf(sessionId);
    const ended = events.filter(({ type }) => isTurnEnd(type)).map(({ data }) => data['turnId']);
    expect(ended).toEqual([(await waitForAccepted(first)).turnId, ...ids.map((turn) => turn.turnId)]);
    const begun = events.filter(({ type }) => type === 'ModelCallStarted').map(({ data }) => data['turnId']);
    expect(begun).not.toContain(turnId);
    expect(held.calls).toBe(3);
  });

  it('all end by one cancel of the session', async () => {
    const held = holdReplies();
    const streams = ['one', 'two', 'three'].map((content) =>
      clients[0].stream('chat.send', to('queue-all', content)),
    );
    const { sessionId } = await waitForAccepted(streams[2] as FrameStream);
    await waitForValue('the first call', async () => (held.calls > 0 ? true : undefined));
    expect(await clients[1].call('session.cancel', { sessionId })).toEqual({ cancelled: true });
    for (const stream of streams)
      expect((await stream.done()).at(-1)?.data).toMatchObject({ status: 'cancelled' });
    held.release();
    expect((await typesOf(sessionId)).filter((type) => isTurnEnd(type))).toEqual(
      streams.map(() => 'TurnCancelled'),
    );
  });
});
