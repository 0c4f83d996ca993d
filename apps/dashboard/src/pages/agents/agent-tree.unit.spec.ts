import { describe, expect, it } from '@jest/globals';
import { treeOfAgents, type AgentNode } from './agent-tree.js';

const agent = (id: string, parentId: string | null = null) => ({ id, parentId });
type Named = ReturnType<typeof agent>;
const namesOf = (nodes: readonly AgentNode<Named>[]): unknown[] =>
  nodes.map(({ agent: { id }, children, below }) => [id, below, ...namesOf(children)]);

describe('the tree of agents', () => {
  it('has children below their parents, in the order of the list, with the number below each', () => {
    const agents = [agent('c', 'b'), agent('a'), agent('b', 'a'), agent('d', 'a'), agent('e')];
    expect(namesOf(treeOfAgents(agents))).toEqual([
      ['a', 3, ['b', 1, ['c', 0]], ['d', 0]],
      ['e', 0],
    ]);
  });

  it('has an agent at its top whose parent is not listed', () => {
    expect(namesOf(treeOfAgents([agent('b', 'gone'), agent('c', 'b')]))).toEqual([['b', 1, ['c', 0]]]);
  });
});
