import { z } from 'zod';
import { AgentId } from './requests.js';

/** Bounds of a workflow: what a run's event, its prompts and a person's overview can hold. */
export const WORKFLOW_LIMITS = {
  /** UTF-16 units of a definition's text, YAML or JSON. */
  sourceLength: 256 * 1024,
  nodes: 64,
  /** Nodes on the longest path. */
  depth: 32,
  inputs: 32,
  promptLength: 32 * 1024,
  /** Of all inputs of a run together. */
  inputLength: 128 * 1024,
  attempts: 10,
} as const;

const NAME = /^[A-Za-z][A-Za-z0-9_-]{0,62}$/;
export const NodeId = z.string().regex(NAME, 'must be a letter, then letters, digits, _ or - (63 at most)');
export const InputName = z
  .string()
  .regex(NAME, 'must be a letter, then letters, digits, _ or - (63 at most)');

/** What a run is given besides its definition. */
export const WorkflowInput = z.strictObject({
  description: z.string().max(500).optional(),
  /** Used when a run is started without this input; without it the input is required. */
  default: z.string().max(WORKFLOW_LIMITS.inputLength).optional(),
});

/** One node: a turn of an agent, begun once everything that it needs has completed. */
export const WorkflowNode = z.strictObject({
  id: NodeId,
  agent: AgentId,
  /** The message of the turn; `{{inputs.NAME}}` and `{{nodes.ID.output}}` stand for texts of the run. */
  prompt: z.string().min(1).max(WORKFLOW_LIMITS.promptLength),
  needs: z.array(NodeId).max(WORKFLOW_LIMITS.nodes).default([]),
  /** Turns that may be begun for it in all: another one only after a failure that may pass. */
  attempts: z.int().min(1).max(WORKFLOW_LIMITS.attempts).default(3),
});
export type WorkflowNode = z.infer<typeof WorkflowNode>;

/** A user's DAG. That its graph holds (no cycle, no unknown node) is the domain's to say. */
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
  });
export type RunInputs = z.infer<typeof RunInputs>;
