import { describe, expect, it } from '@jest/globals';
import { countStates, orderAgents } from './agent-order.js';

const agent = (
  name: string,
  state: 'idle' | 'working' | 'error' | 'paused',
  phase: 'thinking' | 'waiting' | null = null,
) => ({
  ...{ name, state, phase },
});

describe('the order of agents', () => {
  const agents = [
    agent('a', 'idle'),
    agent('b', 'working', 'thinking'),
    agent('c', 'working', 'waiting'),
    agent('d', 'paused'),
    agent('e', 'error'),
    agent('f', 'working', 'thinking'),
  ];

  it('begins with errors, approvals and work, and keeps the order of equals', () =>
    expect(
      orderAgents(agents)
        .map(({ name }) => name)
        .join(''),
    ).toBe('ecbfda'));

  it('counts those that wait for an approval apart', () =>
    expect(countStates(agents)).toEqual([
      { state: 'error', count: 1 },
      { state: 'waiting', count: 1 },
      { state: 'working', count: 2 },
      { state: 'paused', count: 1 },
      { state: 'idle', count: 1 },
    ]));
});
