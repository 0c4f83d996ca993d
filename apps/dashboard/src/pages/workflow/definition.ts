import type { RouteReply } from '@antiphon/client';
import {
  ESCAPE,
  EXPRESSION,
  referencesIn,
  type TemplateReference,
} from '@antiphon/contracts/prompt-references';

export type Workflow = RouteReply<'getWorkflow'>;
export type Definition = Workflow['definition'];
export type WorkflowNode = Definition['nodes'][number];

export const NAME = /^[A-Za-z][A-Za-z0-9_-]{0,62}$/;
export const DEFAULT_ATTEMPTS = 3;
const MAX_NODES = 64;

export const EMPTY: Definition = { name: 'Untitled workflow', inputs: {}, nodes: [] };

/** Returns the path by which `from` already needs `to`, or null if the edge closes no cycle. */
export const findCycle = (
  nodes: readonly WorkflowNode[],
  from: string,
  to: string,
): readonly string[] | null => {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const before = new Map<string, string>();
  const todo = [from];
  const seen = new Set(todo);
  for (let id = todo.pop(); id !== undefined; id = todo.pop()) {
    if (id === to) {
      const path = [to];
      for (let step = before.get(to); step !== undefined; step = before.get(step)) path.push(step);
      return path;
    }
    for (const need of byId.get(id)?.needs ?? []) {
      if (seen.has(need)) continue;
      seen.add(need);
      before.set(need, id);
      todo.push(need);
    }
  }
  return null;
};

/** Returns why the edge `from → to` cannot be drawn, or null. */
export const refuseEdge = (nodes: readonly WorkflowNode[], from: string, to: string): string | null => {
  if (from === to) return `“${from}” cannot need itself`;
  if (nodes.find(({ id }) => id === to)?.needs.includes(from)) return `“${to}” already needs “${from}”`;
  const cycle = findCycle(nodes, from, to);
  if (!cycle) return null;
  return `“${from}” already comes after “${to}”: the edge would close the cycle ${[...cycle, to].join(' → ')}`;
};

/** Returns all direct and indirect needs of a node. */
export const ancestorsOf = (nodes: readonly WorkflowNode[], id: string): ReadonlySet<string> => {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const found = new Set<string>();
  const todo = [...(byId.get(id)?.needs ?? [])];
  for (let next = todo.pop(); next !== undefined; next = todo.pop()) {
    if (found.has(next)) continue;
    found.add(next);
    todo.push(...(byId.get(next)?.needs ?? []));
  }
  return found;
};

const problemOfReference = (
  { inputs }: Definition,
  before: ReadonlySet<string>,
  reference: TemplateReference,
): string | null => {
  if (reference.kind === 'unknown')
    return `has {{${reference.text}}}; it may have {{inputs.NAME}} and {{nodes.ID.output}}. Write \\{{ for braces of the text`;
  if (reference.kind === 'input')
    return Object.hasOwn(inputs, reference.name)
      ? null
      : `uses the input “${reference.name}”, which is not declared`;
  return before.has(reference.nodeId)
    ? null
    : `uses the output of “${reference.nodeId}”, which it does not need`;
};

const problemsOfNode = (
  definition: Definition,
  node: WorkflowNode,
  agents: ReadonlySet<string> | null,
): string[] => {
  const { nodes } = definition;
  const problems: string[] = [];
  if (!NAME.test(node.id)) problems.push('needs a name of letters, digits, _ or -, a letter first');
  if (nodes.filter(({ id }) => id === node.id).length > 1) problems.push('has the name of another node');
  if (node.prompt.trim() === '') problems.push('has no prompt');
  if (node.agent === '') problems.push('has no agent');
  else if (agents && !agents.has(node.agent))
    problems.push(`names the agent “${node.agent}”, which is not there`);
  const known = new Set(nodes.map(({ id }) => id));
  for (const need of node.needs) if (!known.has(need)) problems.push(`needs “${need}”, which is not there`);
  const before = ancestorsOf(nodes, node.id);
  if (before.has(node.id)) problems.push('needs itself through a cycle');
  for (const reference of referencesIn(node.prompt)) {
    const problem = problemOfReference(definition, before, reference);
    if (problem) problems.push(problem);
  }
  return problems;
};

/** Problems by node. An empty id has those of the whole definition. */
export type Problems = ReadonlyMap<string, readonly string[]>;

/** Checks a definition as the server does. The server decides when it is saved. */
export const problemsOf = (definition: Definition, agents: ReadonlySet<string> | null): Problems => {
  const found = new Map<string, readonly string[]>();
  const own: string[] = [];
  if (definition.name.trim() === '') own.push('The workflow has no name');
  if (definition.nodes.length === 0) own.push('The workflow has no node');
  if (definition.nodes.length > MAX_NODES)
    own.push(`The workflow has ${definition.nodes.length} nodes; ${MAX_NODES} are allowed`);
  for (const name of Object.keys(definition.inputs))
    if (!NAME.test(name)) own.push(`The input “${name}” needs a name of letters, digits, _ or -`);
  if (own.length > 0) found.set('', own);
  // Larger graphs are refused as a whole.
  if (definition.nodes.length > MAX_NODES) return found;
  for (const node of definition.nodes) {
    const problems = problemsOfNode(definition, node, agents);
    if (problems.length > 0) found.set(node.id, problems);
  }
  return found;
};

/** Returns the node that a message of the server names, or an empty string. */
export const nodeOfMessage = (message: string, nodes: readonly WorkflowNode[]): string => {
  const named = /node "([^"]+)"/.exec(message)?.[1] ?? /: (\S+) -> /.exec(message)?.[1] ?? '';
  return nodes.some(({ id }) => id === named) ? named : '';
};

const freeName = (nodes: readonly WorkflowNode[], wanted: string): string => {
  const taken = new Set(nodes.map(({ id }) => id));
  if (!taken.has(wanted)) return wanted;
  for (let number = 2; ; number++) if (!taken.has(`${wanted}-${number}`)) return `${wanted}-${number}`;
};

export const addNode = (
  definition: Definition,
  agent: string,
  needs: readonly string[],
): [Definition, string] => {
  const id = freeName(definition.nodes, `step-${definition.nodes.length + 1}`);
  const node = { id, agent, prompt: '', needs: [...needs], attempts: DEFAULT_ATTEMPTS };
  return [{ ...definition, nodes: [...definition.nodes, node] }, id];
};

export const removeNodes = (definition: Definition, ids: ReadonlySet<string>): Definition => ({
  ...definition,
  nodes: definition.nodes
    .filter(({ id }) => !ids.has(id))
    .map((node) =>
      node.needs.some((id) => ids.has(id))
        ? { ...node, needs: node.needs.filter((id) => !ids.has(id)) }
        : node,
    ),
});

/** Changes a node. A new id also changes the needs and prompts that name it. */
export const changeNode = (definition: Definition, id: string, change: Partial<WorkflowNode>): Definition => {
  const next = change.id ?? id;
  const renamed = (node: WorkflowNode): WorkflowNode =>
    next === id
      ? node
      : {
          ...node,
          needs: node.needs.map((need) => (need === id ? next : need)),
          prompt: node.prompt.replaceAll(EXPRESSION, (whole, before: string, text: string) =>
            before !== ESCAPE && text.trim() === `nodes.${id}.output`
              ? `${before}{{nodes.${next}.output}}`
              : whole,
          ),
        };
  const nodes = definition.nodes.map((node) => renamed(node.id === id ? { ...node, ...change } : node));
  return { ...definition, nodes };
};

export const addEdge = (definition: Definition, from: string, to: string): Definition => ({
  ...definition,
  nodes: definition.nodes.map((node) => (node.id === to ? { ...node, needs: [...node.needs, from] } : node)),
});

export const removeEdges = (
  definition: Definition,
  edges: readonly { readonly from: string; readonly to: string }[],
): Definition => ({
  ...definition,
  nodes: definition.nodes.map((node) => {
    const gone = new Set(edges.filter(({ to }) => to === node.id).map(({ from }) => from));
    return gone.size === 0 ? node : { ...node, needs: node.needs.filter((need) => !gone.has(need)) };
  }),
});
