import { z } from 'zod';
import { AgentId } from './agent-id.js';

/** Limits of a workflow. They keep a run's events, prompts and views bounded. */
export const WORKFLOW_LIMITS = {
  /** Maximum length of a definition's text (YAML or JSON), UTF-16 units. */
  sourceLength: 256 * 1024,
  nodes: 64,
  /** Maximum number of nodes on a path. */
  depth: 32,
  inputs: 32,
  promptLength: 32 * 1024,
  /** Maximum length of all inputs of a run together, UTF-16 units. */
  inputLength: 128 * 1024,
  attempts: 10,
} as const;

const NAME = /^[A-Za-z][A-Za-z0-9_-]{0,62}$/;
const Name = () => z.string().regex(NAME, 'must be a letter, then letters, digits, _ or - (63 at most)');
export const NodeId = Name();
export const InputName = Name();

/** Declaration of one input of a workflow. */
export const WorkflowInput = z.strictObject({
  description: z.string().max(500).optional(),
  default: z
    .string()
    .max(WORKFLOW_LIMITS.inputLength)
    .optional()
    .describe('Value of a run that omits this input. Without a default the input is required.'),
});

/** One node of a workflow: a turn of an agent that starts after the nodes that it needs. */
export const WorkflowNode = z.strictObject({
  id: NodeId,
  agent: AgentId,
  prompt: z
    .string()
    .min(1)
    .max(WORKFLOW_LIMITS.promptLength)
    .describe(
      'Message of the turn. `{{inputs.NAME}}` and `{{nodes.ID.output}}` are replaced by texts of the run. Write `\\{{` for braces of the text.',
    ),
  needs: z
    .array(NodeId)
    .max(WORKFLOW_LIMITS.nodes)
    .default([])
    .describe('Nodes that must complete before this one starts.'),
  attempts: z
    .int()
    .min(1)
    .max(WORKFLOW_LIMITS.attempts)
    .default(3)
    .describe('Maximum number of turns for this node. Only a transient failure is retried.'),
});
export type WorkflowNode = z.infer<typeof WorkflowNode>;

/**
 * A workflow: a directed acyclic graph of nodes. The domain checks the graph; this schema checks
 * the fields.
 */
export const WorkflowDefinition = z.strictObject({
  name: z.string().min(1).max(200),
  description: z.string().max(2_000).optional(),
  inputs: z
    .record(InputName, WorkflowInput)
    .refine((inputs) => Object.keys(inputs).length <= WORKFLOW_LIMITS.inputs, {
      message: `at most ${WORKFLOW_LIMITS.inputs} inputs`,
    })
    .default({}),
  nodes: z.array(WorkflowNode).min(1).max(WORKFLOW_LIMITS.nodes),
});
export type WorkflowDefinition = z.infer<typeof WorkflowDefinition>;

/** Values of a run's inputs, by name. */
export const RunInputs = z
  .record(InputName, z.string().max(WORKFLOW_LIMITS.inputLength))
  .refine((inputs) => Object.keys(inputs).length <= WORKFLOW_LIMITS.inputs, {
    message: `at most ${WORKFLOW_LIMITS.inputs} inputs`,
  })
  .refine((inputs) => Object.values(inputs).join('').length <= WORKFLOW_LIMITS.inputLength, {
    message: `at most ${WORKFLOW_LIMITS.inputLength} characters in all`,
  })
  .describe('Values of the inputs, by name.');
export type RunInputs = z.infer<typeof RunInputs>;
