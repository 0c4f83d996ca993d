/** An agent with the agents that it has spawned. */
export interface AgentNode<T> {
  readonly agent: T;
  readonly children: readonly AgentNode<T>[];
  /** Number of the agents below it. */
  readonly below: number;
}

interface Spawned {
  readonly id: string;
  readonly parentId: string | null;
}

/**
 * Returns agents below their parents, in the order in which they are listed. An agent whose parent
 * is not listed is a root.
 */
export const treeOfAgents = <T extends Spawned>(agents: readonly T[]): AgentNode<T>[] => {
  const listed = new Set(agents.map(({ id }) => id));
  const childrenOf = Map.groupBy(agents, ({ parentId }) =>
    parentId !== null && listed.has(parentId) ? parentId : null,
  );
  const nodeOf = (agent: T): AgentNode<T> => {
    const children = (childrenOf.get(agent.id) ?? []).map(nodeOf);
    const below = children.reduce((sum, child) => sum + 1 + child.below, 0);
    return { agent, children, below };
  };
  return (childrenOf.get(null) ?? []).map(nodeOf);
};
