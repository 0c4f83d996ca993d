import { referencesIn } from '@antiphon/contracts/prompt-references';
import type { WorkflowDefinition, WorkflowNode } from '@antiphon/contracts/agent';
import { rejected } from '@antiphon/kernel';

/** Fields of a node that define the graph. */
type GraphNode = Pick<WorkflowNode, 'id' | 'needs'>;

type GraphShape =
  | {
      /** Topological order; nodes of one wave keep the order of the definition. */
      readonly order: readonly string[];
      /** Number of nodes on the longest path. */
      readonly depth: number;
    }
  | {
      /** A cycle from a node back to itself; each node needs the next one. */
      readonly cycle: readonly string[];
    };

/** Follows needs among the remaining nodes, each of which has one, until a node repeats. */
const findCycle = (left: readonly GraphNode[]): string[] => {
  const byId = new Map(left.map((node) => [node.id, node]));
  const path: string[] = [];
  let node = left[0];
  while (node !== undefined && !path.includes(node.id)) {
    path.push(node.id);
    node = node.needs.flatMap((id) => byId.get(id) ?? [])[0];
  }
  const repeated = node?.id ?? '';
  return [...path.slice(path.indexOf(repeated)), repeated];
};

/** Returns the order in which nodes can run, wave by wave, or a cycle. Every need must exist. */
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

/** Returns all direct and indirect needs of a node. The graph must have no cycle. */
const ancestorsOf = (nodes: readonly GraphNode[], nodeId: string): ReadonlySet<string> => {
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

/** External rules that a definition is checked against. */
export interface DefinitionRules {
  /** Returns true for a configured agent. */
  readonly agentExists: (agentId: string) => boolean;
  /** Maximum number of nodes on the longest path. */
  readonly maxDepth: number;
}

const refuseDuplicates = (nodes: readonly WorkflowNode[]): void => {
  const seen = new Set<string>();
  for (const { id } of nodes) {
    if (seen.has(id)) throw rejected('WORKFLOW.DUPLICATE_NODE', `two nodes have the id "${id}"`);
    seen.add(id);
  }
};

const refuseUnknownNeeds = (nodes: readonly WorkflowNode[]): void => {
  const ids = new Set(nodes.map(({ id }) => id));
  for (const { id, needs } of nodes)
    for (const need of needs)
      if (!ids.has(need))
        throw rejected('WORKFLOW.UNKNOWN_NODE', `node "${id}" needs "${need}", which is not there`, {
          data: { node: id, need },
        });
};

const orderOf = (nodes: readonly WorkflowNode[], maxDepth: number): readonly string[] => {
  const shape = shapeOf(nodes);
  if ('cycle' in shape)
    throw rejected('WORKFLOW.CYCLE', `the nodes need each other in a circle: ${shape.cycle.join(' -> ')}`, {
      data: { path: shape.cycle },
    });
  if (shape.depth > maxDepth)
    throw rejected('WORKFLOW.TOO_DEEP', `the longest path has ${shape.depth} nodes; ${maxDepth} are allowed`);
  return shape.order;
};

const refuseReference = (node: WorkflowNode, problem: string): never => {
  throw rejected('WORKFLOW.BAD_REFERENCE', `the prompt of node "${node.id}" ${problem}`, {
    data: { node: node.id },
  });
};

const checkReferences = ({ inputs, nodes }: WorkflowDefinition, node: WorkflowNode): void => {
  const before = ancestorsOf(nodes, node.id);
  for (const reference of referencesIn(node.prompt)) {
    if (reference.kind === 'unknown')
      refuseReference(
        node,
        `has {{${reference.text}}}; it may have {{inputs.NAME}} and {{nodes.ID.output}}. Write \\{{ for braces of the text`,
      );
    else if (reference.kind === 'input' && !Object.hasOwn(inputs, reference.name))
      refuseReference(node, `uses the input "${reference.name}", which the workflow does not declare`);
    else if (reference.kind === 'output' && !before.has(reference.nodeId))
      refuseReference(
        node,
        `uses the output of "${reference.nodeId}", which it does not need: add it to \`needs\``,
      );
  }
};

/**
 * Returns an order in which the nodes can run. Throws (kind rejected) `WORKFLOW.DUPLICATE_NODE`,
 * `WORKFLOW.UNKNOWN_NODE`, `WORKFLOW.CYCLE` (`data.path` ends with its first node),
 * `WORKFLOW.TOO_DEEP`, `WORKFLOW.BAD_REFERENCE` or `WORKFLOW.UNKNOWN_AGENT`.
 */
export const checkDefinition = (
  definition: WorkflowDefinition,
  { agentExists, maxDepth }: DefinitionRules,
): readonly string[] => {
  const { nodes } = definition;
  refuseDuplicates(nodes);
  refuseUnknownNeeds(nodes);
  const order = orderOf(nodes, maxDepth);
  for (const node of nodes) {
    checkReferences(definition, node);
    if (!agentExists(node.agent))
      throw rejected(
        'WORKFLOW.UNKNOWN_AGENT',
        `node "${node.id}" names the agent "${node.agent}", which is not there`,
      );
  }
  return order;
};
