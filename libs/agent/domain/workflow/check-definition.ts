import type { WorkflowDefinition, WorkflowNode } from '@antiphon/contracts/agent';
import { rejected } from '@antiphon/kernel';
import { ancestorsOf, shapeOf } from './node-graph.js';
import { referencesIn } from './prompt-template.js';

/** What a definition is checked against besides itself. */
export interface DefinitionRules {
  /** Whether there is such an agent. */
  readonly agentExists: (agentId: string) => boolean;
  /** Nodes on the longest path. */
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

const refuseReference = (node: WorkflowNode, why: string): never => {
  throw rejected('WORKFLOW.BAD_REFERENCE', `the prompt of node "${node.id}" ${why}`, {
    data: { node: node.id },
  });
};

const checkReferences = ({ inputs, nodes }: WorkflowDefinition, node: WorkflowNode): void => {
  const before = ancestorsOf(nodes, node.id);
  for (const reference of referencesIn(node.prompt)) {
    if (reference.kind === 'unknown')
      refuseReference(node, `has {{${reference.text}}}; it may have {{inputs.NAME}} and {{nodes.ID.output}}`);
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
 * Answers an order in which the nodes can run. Throws (kind rejected) `WORKFLOW.DUPLICATE_NODE`, `WORKFLOW.UNKNOWN_NODE`,
 * `WORKFLOW.CYCLE` (data.path: the circle, its first node again at its end), `WORKFLOW.TOO_DEEP`,
 * `WORKFLOW.BAD_REFERENCE`, `WORKFLOW.UNKNOWN_AGENT`.
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
