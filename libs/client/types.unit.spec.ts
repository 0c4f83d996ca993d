import { describe, expect, it } from '@jest/globals';
import { createClient } from './index.js';

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

describe('the types of the client', () => {
  it('have a function for each route at run time, too', () =>
    expect([typeof client.http.getAgent, typeof client.http.createTask]).toEqual(['function', 'function']));
});
