import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { connectClient, type Incoming, type SocketClient } from '@antiphon/testing/client';
import type { TestStack } from '@antiphon/testing/stack';
import { readEvents, startQuickStack, waitForValue } from './stack-under-test.js';

jest.setTimeout(180_000);

/** The scripted provider and its agents: no key is needed. */
const CONFIG = '[gateway]\nhost = "127.0.0.1"\nport = 0\n';

type Frame = Incoming & {
  readonly type?: string;
  readonly cursor?: string;
  readonly to?: string;
  readonly actor?: string;
  readonly agentId?: string;
};

let stack: TestStack;
const clients: SocketClient[] = [];

/** Connects to `/ws`, or to a path below it. */
const connect = async (gateway: number, path = ''): Promise<SocketClient> => {
  const client = await connectClient(`${stack.wsUrls()[gateway] ?? stack.wsUrl}${path}`);
  clients.push(client);
  return client;
};
const received = (client: SocketClient): Frame[] => client.received as readonly Incoming[] as Frame[];
const positions = (client: SocketClient, id: string | number): number[] =>
  received(client)
    .filter((frame) => frame.id === id && frame.event === 'log')
    .map(({ data }) => (data as { position: number }).position);
/** Changes by turns; those of a configured agent's start may come before a subscription. */
const states = (client: SocketClient): unknown[] =>
  received(client).filter(({ type, actor }) => type === 'agent_broadcast_state' && actor === 'runtime');

beforeAll(async () => {
  stack = await startQuickStack(CONFIG, { gateway: 2 });
});
afterAll(async () => {
  await Promise.all(clients.map((client) => client.close()));
  await stack?.stop();
});

describe('clients of two gateways', () => {
  it('see the same events and states of agents, live and from a cursor, and a legacy client sees none', async () => {
    const [dashboard, one, two, legacy] = await Promise.all([
      connect(1, '/events?from=start&category=session'),
      connect(0),
      connect(1),
      connect(0),
    ]);
    for (const client of [one, two]) await client.call('agent.subscribe');
    const message = { channel: 'web', account: 'main', peer: 'ada', content: 'hello' };
    one.sendRaw(JSON.stringify({ type: 'chat.send', id: 'typed', ...message, unknown: true }));
    await one.waitFor('done', ({ id, event }) => id === 'typed' && event === 'done');
    await legacy.stream('chat.send', { ...message, peer: 'bob' }).done();
    const log = await readEvents(stack, { category: 'session' });
    const expected = log.map(({ position }) => position);
    await waitForValue('all events', () =>
      Promise.resolve(positions(dashboard, 'events').length >= expected.length || undefined),
    );
    expect(positions(dashboard, 'events')).toEqual(expected);
    const ends = (client: SocketClient) =>
      (states(client) as Frame[]).filter(({ to }) => to === 'idle').length >= 2 || undefined;
    for (const client of [one, two]) await waitForValue('both turns', () => Promise.resolve(ends(client)));
    expect(states(one)).toEqual(states(two));
    expect(received(legacy).filter(({ type }) => type !== undefined && type !== 'session.ack')).toEqual([]);
    const middle = received(dashboard).filter(({ event }) => event === 'log')[3];
    const resumed = await connect(0, `/events?category=session&from=${middle?.cursor ?? ''}`);
    await resumed.waitFor('the past', ({ event }) => event === 'live');
    expect(positions(resumed, 'events')).toEqual(expected.slice(4));
  });

  it('get an error for an unknown type and for a filter that does not exist', async () => {
    const client = await connect(0);
    client.sendRaw('{"type":"agent.plan","id":7}');
    expect(await client.waitFor('an error', ({ id }) => id === 7)).toMatchObject({
      type: 'error',
      error: { code: -32601 },
    });
    const wrong = await connect(0, '/events?colour=red');
    expect(await wrong.waitFor('a refusal', ({ id }) => id === 'events')).toMatchObject({
      error: { code: -32602, message: expect.stringContaining('colour') },
    });
  });
});
