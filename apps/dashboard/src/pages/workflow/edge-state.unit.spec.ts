import { describe, expect, it } from '@jest/globals';
import type { RunNode } from './graph-card.js';
import { countEdges, edgeState } from './edge-state.js';

describe('an edge of a run', () => {
  it.each([
    ['waiting', 'waiting', 'waits'],
    ['ready', 'waiting', 'waits'],
    ['running', 'waiting', 'waits'],
    ['completed', 'ready', 'active'],
    ['completed', 'running', 'active'],
    ['completed', 'waiting', 'taken'],
    ['completed', 'completed', 'taken'],
    ['completed', 'failed', 'taken'],
    ['completed', 'skipped', 'not taken'],
    ['failed', 'waiting', 'not taken'],
    ['failed', 'skipped', 'not taken'],
    ['cancelled', 'cancelled', 'not taken'],
  ] as const)('from a %s to a %s node %s', (from, to, state) => expect(edgeState(from, to)).toBe(state));

  it('is counted by its state, those that carry something first', () => {
    const node = (id: string, status: RunNode['status'], ...needs: string[]) => ({
      ...{ id, agent: 'a', needs, status },
    });
    const nodes = [
      ...[node('a', 'completed'), node('b', 'completed', 'a'), node('c', 'running', 'b')],
      ...[node('d', 'waiting', 'c'), node('e', 'waiting', 'c', 'd')],
    ];
    const counts = countEdges(nodes, nodes as unknown as readonly RunNode[]);
    expect(counts.map(({ text }) => text)).toEqual(['1 active', '1 taken', '3 wait']);
  });
});
