import type { WorkflowNode } from '@antiphon/contracts/agent';

/** What of a node makes the graph. */
export type GraphNode = Pick<WorkflowNode, 'id' | 'needs'>;

export type GraphShape =
  | {
      /** Nodes after all that they need; among equals in the order of the definition. */
      readonly order: readonly string[];
      /** Nodes on the longest path. */
      readonly depth: number;
    }
  | {
      /** A cycle, from a node back to itself: each needs the one after it. */
      readonly cycle: readonly string[];
    };

/** Follows what is left of the graph, where every node needs another that is left, until one comes again. */
const findCycle = (left: readonly GraphNode[]): string[] => {
  const byId = new Map(left.map((node) => [node.id, node]));
  const path: string[] = [];
  let node = left[0];
  while (node !== undefined && !path.includes(node.id)) {
    path.push(node.id);
    node = node.needs.flatMap((id) => byId.get(id) ?? [])[0];
  }
  const again = node?.id ?? '';
  return [...path.slice(path.indexOf(again)), again];
};

/** The order in which nodes can run, wave by wave, or the cycle that leaves none. Every id in `needs` must exist. */
export const shapeOf = (nodes: readonly GraphNode[]): GraphShape => {
  const order: string[] = [];
  const done = new Set<string>();
  let left = nodes;
  let depth = 0;
  while (left.length > 0) {
    const wave = left.filter(({ needs }) => needs.every((id) => done.has(id)));
    if (wave.length === 0) return { cycle: findCycle(left) };
    for (const { id } of wave) {
      done.add(id);
      order.push(id);
    }
    left = left.filter(({ id }) => !done.has(id));
    depth++;
  }
  return { order, depth };
};

/** Everything that must have completed before a node, its own needs' needs included. The graph must have no cycle. */
export const ancestorsOf = (nodes: readonly GraphNode[], nodeId: string): ReadonlySet<string> => {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const found = new Set<string>();
  const todo = [...(byId.get(nodeId)?.needs ?? [])];
  for (let id = todo.pop(); id !== undefined; id = todo.pop()) {
    if (found.has(id)) continue;
    found.add(id);
    todo.push(...(byId.get(id)?.needs ?? []));
  }
  return found;
};
