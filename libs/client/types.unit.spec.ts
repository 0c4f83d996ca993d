import { describe, expect, it } from '@jest/globals';
import { AGENT_FRAMES } from '@antiphon/contracts/gateway';
import { createClient, isAgentFrame, type MemoryEvent, type Notification } from './index.js';

const client = createClient({ url: 'http://one', fetch: () => new Promise(() => undefined) });

/** Compiled, never run: the build of the specs fails if a wrong call compiles. */
export const wrongCalls = (): unknown[] => [
  // @ts-expect-error the id is required
  client.http.getAgent(),
  // @ts-expect-error there is no such parameter
  client.http.getAgent({ params: { name: 'main' } }),
  // @ts-expect-error a route of no contract
  client.http.listDragons(),
  // @ts-expect-error the content is required
  client.chat({ channel: 'web', account: 'main', peer: 'alice' }),
  // @ts-expect-error a stream has no single result
  client.call('chat.send', {}),
  // @ts-expect-error a notification may be no frame of memory
  (notification: Notification): MemoryEvent => notification,
  // @ts-expect-error there is no such decision
  client.approvals.answer({ approvalId: 'a', decision: 'maybe' }),
];

export const rightCalls = async (): Promise<void> => {
  const { agents } = await client.http.listAgents();
  const names: string[] = agents.map(({ id }) => id);
  const pong: 'pong' = await client.call('ping');
  for await (const frame of client.send({ sessionId: pong, content: names[0] ?? '' }))
    if (frame.event === 'usage') frame.data.input_tokens.toFixed();
};

/** Returns the text of a frame of memory; null for any other notification. */
const memoryTextOf = (notification: Notification): string | null => {
  if (!isAgentFrame(notification) || notification.type !== 'memory.event') return null;
  const event: MemoryEvent = notification;
  return `${event.change}: ${event.text}`;
};

describe('the types of the client', () => {
  it('have a function for each route at run time, too', () =>
    expect([typeof client.http.getAgent, typeof client.http.createTask]).toEqual(['function', 'function']));

  it('tell a frame of memory from other notifications', () => {
    expect(memoryTextOf({ type: 'memory.event', change: 'learned', text: 'name: Ada' })).toBe(
      'learned: name: Ada',
    );
    expect(memoryTextOf({ type: 'gateway.degraded', change: 'learned', text: 'x' })).toBeNull();
    expect(Object.keys(AGENT_FRAMES).every((type) => isAgentFrame({ type }))).toBe(true);
  });
});
