import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { connectClient, textOf, type FrameStream, type SocketClient } from '@antiphon/testing/client';
import { startMockModel, type MockModel, type MockScript } from '@antiphon/testing/providers';
import { startStack, type TestStack } from '@antiphon/testing/stack';
import { CANARY_KEY, waitForValue, readEvents, twoVendorConfig } from './stack-under-test.js';

jest.setTimeout(120_000);

const ENDS = /^Turn(Completed|Failed|Cancelled)$/;

let script: MockScript;
let mock: MockModel;
let stack: TestStack;
/** One at each of two gateways, behind which are two agents. */
let doors: readonly [SocketClient, SocketClient];

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
  doors = await Promise.all([open(one), open(other)]);
});
afterAll(async () => {
  await Promise.all((doors ?? []).map((door) => door.close()));
  await stack?.stop();
  await mock?.close();
});

const to = (peer: string, content: string, more: object = {}) => ({
  ...{ channel: 'test', account: 'twice', peer, content, agent: 'claude' },
  ...more,
});
const acceptedOf = async (stream: FrameStream) =>
  (await stream.waitFor('accepted', ({ event }) => event === 'accepted')).data as {
    turnId: string;
    sessionId: string;
  };
const eventsOf = async (sessionId: string) =>
  (await readEvents(stack)).filter(({ streamId }) => streamId === `session-${sessionId}`);
const typesOf = async (sessionId: string) => (await eventsOf(sessionId)).map(({ type }) => type);
/** Without the id of the request that each was streamed for. */
const shown = ({ frames }: Pick<FrameStream, 'frames'>) =>
  frames
    .filter(({ event }) => event !== 'accepted')
    .map(({ event, data, offset }) => ({ event, data, offset }));

/**
 * The provider writes a word and holds the rest back until it is let go; `begun` counts the calls.
 */
const holding = () => {
  const rest = Promise.withResolvers<void>();
  const held = { begun: 0, letGo: () => rest.resolve() };
  script = ({ user }) => {
    held.begun += 1;
    return {
      reply: { text: ['well ', `REST ${user}`] },
      before: (piece) => (piece.includes('REST') ? rest.promise : undefined),
    };
  };
  return held;
};

describe('the same thing asked for twice, at two gateways at once', () => {
  it('a message with one key is one turn, and both see all of it', async () => {
    script = ({ user }) => ({ text: ['you said ', user] });
    await Promise.all(
      Array.from({ length: 12 }, async (_, nth) => {
        const message = to(`submit-${nth}`, `message ${nth}`, { idempotencyKey: randomUUID() });
        const streams = doors.map((door) => door.stream('chat.send', message));
        const [first, second] = await Promise.all(streams.map(acceptedOf));
        expect(second).toEqual(first);
        await Promise.all(streams.map((stream) => stream.done()));
        expect(shown(streams[0] as FrameStream)).toEqual(shown(streams[1] as FrameStream));
        const types = await typesOf(first?.sessionId ?? '');
        expect(types.filter((type) => type === 'TurnRequested' || ENDS.test(type))).toHaveLength(2);
      }),
    );
  });

  it('a key with another message is a conflict, wherever it is asked', async () => {
    const key = { idempotencyKey: randomUUID() };
    await doors[0].stream('chat.send', to('conflict', 'this', key)).done();
    await expect(doors[1].stream('chat.send', to('conflict', 'that', key)).done()).rejects.toMatchObject({
      rpc: { code: -32009 },
    });
  });

  it('a cancel is one end; afterwards it says how the turn ended', async () => {
    const held = holding();
    const stream = doors[0].stream('chat.send', to('cancel', 'go on'));
    const { sessionId, turnId } = await acceptedOf(stream);
    await stream.waitFor('text', ({ event }) => event === 'text');
    const cancel = (door: SocketClient) => door.call('session.cancel', { sessionId, turnId });
    const answers = await Promise.all([...doors, ...doors].map(cancel));
    expect(answers).toContainEqual({ cancelled: true });
    for (const answer of answers)
      expect([{ cancelled: true }, { cancelled: false, status: 'cancelled' }]).toContainEqual(answer);
    expect((await stream.done()).at(-1)?.data).toEqual({ turnId, status: 'cancelled' });
    held.letGo();
    expect(await Promise.all(doors.map(cancel))).toEqual(
      doors.map(() => ({ cancelled: false, status: 'cancelled' })),
    );
    expect((await typesOf(sessionId)).filter((type) => ENDS.test(type))).toEqual(['TurnCancelled']);
  });

  it('a cancel that meets the end of its turn: one of both, and both gateways know which', async () => {
    script = ({ user }) => ({ text: [user] });
    await Promise.all(
      Array.from({ length: 12 }, async (_, nth) => {
        const stream = doors[0].stream('chat.send', to(`race-${nth}`, 'quick'));
        const { sessionId, turnId } = await acceptedOf(stream);
        await Promise.all(doors.map((door) => door.call('session.cancel', { sessionId, turnId })));
        const { status } = (await stream.done()).at(-1)?.data as { status: string };
        const answers = await Promise.all(
          doors.map((door) => door.call('session.cancel', { sessionId, turnId })),
        );
        expect(answers).toEqual(doors.map(() => ({ cancelled: false, status })));
        expect((await typesOf(sessionId)).filter((type) => ENDS.test(type))).toHaveLength(1);
      }),
    );
  });

  it('a resume gives both the same frames, while the turn runs and after', async () => {
    const held = holding();
    const stream = doors[0].stream('chat.send', to('resume', 'again'));
    const { sessionId } = await acceptedOf(stream);
    await stream.waitFor('text', ({ event }) => event === 'text');
    // A connection that resumes a session again goes on with the second one alone.
    const resumed = doors.map((door) => door.stream('session.resume', { sessionId, after: 0 }));
    await Promise.all(resumed.map((follower) => follower.waitFor('text', ({ event }) => event === 'text')));
    held.letGo();
    const frames = await stream.done();
    for (const follower of resumed) {
      await follower.waitFor('done', ({ event }) => event === 'done');
      expect(shown(follower)).toEqual(shown({ frames }));
    }
    expect(textOf(frames)).toBe('well REST again');
    expect(held.begun).toBe(1);
  });
});

describe('turns that wait behind another', () => {
  it('run in the order accepted, wherever they came in; a cancelled one ends in its place and asks nobody', async () => {
    const held = holding();
    const first = doors[0].stream('chat.send', to('queue', 'one'));
    const { sessionId } = await acceptedOf(first);
    const waiting: FrameStream[] = [];
    for (const [nth, content] of ['two', 'three', 'four'].entries()) {
      const door = doors[nth % 2] as SocketClient;
      const stream = door.stream('chat.send', to('queue', content));
      waiting.push(stream);
      await acceptedOf(stream);
    }
    const ids = await Promise.all(waiting.map(acceptedOf));
    const turnId = ids[1]?.turnId;
    expect(await doors[1].call('session.cancel', { sessionId, turnId })).toEqual({ cancelled: true });
    held.letGo();
    await Promise.all([first, ...waiting].map((stream) => stream.done()));

    const statuses = waiting.map(({ frames }) => (frames.at(-1)?.data as { status: string }).status);
    expect(statuses).toEqual(['completed', 'cancelled', 'completed']);
    const events = await eventsOf(sessionId);
    const ended = events.filter(({ type }) => ENDS.test(type)).map(({ data }) => data['turnId']);
    expect(ended).toEqual([(await acceptedOf(first)).turnId, ...ids.map((turn) => turn.turnId)]);
    const begun = events.filter(({ type }) => type === 'ModelCallStarted').map(({ data }) => data['turnId']);
    expect(begun).not.toContain(turnId);
    expect(held.begun).toBe(3);
  });

  it('are all ended by one cancel of the session', async () => {
    const held = holding();
    const streams = ['one', 'two', 'three'].map((content) =>
      doors[0].stream('chat.send', to('queue-all', content)),
    );
    const { sessionId } = await acceptedOf(streams[2] as FrameStream);
    await waitForValue('the first call', async () => (held.begun > 0 ? true : undefined));
    expect(await doors[1].call('session.cancel', { sessionId })).toEqual({ cancelled: true });
    for (const stream of streams)
      expect((await stream.done()).at(-1)?.data).toMatchObject({ status: 'cancelled' });
    held.letGo();
    expect((await typesOf(sessionId)).filter((type) => ENDS.test(type))).toEqual(
      streams.map(() => 'TurnCancelled'),
    );
  });
});
