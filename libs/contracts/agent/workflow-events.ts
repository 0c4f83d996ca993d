import { z } from 'zod';
import { Cause, event, eventOfCause } from '../log/stored-event.js';
import { WorkflowDefinition } from './workflow-definition.js';

/** A definition was saved as a draft. `version` counts the definitions of this workflow, from 1. */
export const WorkflowSaved = event('WorkflowSaved', {
  workflowId: z.uuid(),
  version: z.int().positive(),
  definition: WorkflowDefinition,
  savedAt: z.iso.datetime(),
});
export const WorkflowValidationStarted = event('WorkflowValidationStarted', {
  workflowId: z.uuid(),
  version: z.int().positive(),
  startedAt: z.iso.datetime(),
});
/**
 * The definition is valid: its graph has no cycle and its agents exist. `order` is one valid order
 * of its nodes.
 */
export const WorkflowValidated = event('WorkflowValidated', {
  workflowId: z.uuid(),
  version: z.int().positive(),
  order: z.array(z.string()),
  validatedAt: z.iso.datetime(),
});
/** The definition is invalid, and stays a draft. */
export const WorkflowRefused = eventOfCause('WorkflowRefused', {
  workflowId: z.uuid(),
  version: z.int().positive(),
  code: z.string(),
  cause: Cause,
  refusedAt: z.iso.datetime(),
});
export const WorkflowRunStarted = event('WorkflowRunStarted', {
  workflowId: z.uuid(),
  runId: z.uuid(),
  startedAt: z.iso.datetime(),
});
export const WorkflowRunEnded = event('WorkflowRunEnded', {
  workflowId: z.uuid(),
  runId: z.uuid(),
  status: z.enum(['completed', 'failed', 'cancelled']),
  endedAt: z.iso.datetime(),
});
export const WorkflowDeleted = event('WorkflowDeleted', {
  workflowId: z.uuid(),
  deletedAt: z.iso.datetime(),
});

/** Every event of a `workflow-<id>` stream. */
export const WorkflowEvent = z.discriminatedUnion('type', [
  WorkflowSaved,
  WorkflowValidationStarted,
  WorkflowValidated,
  WorkflowRefused,
  WorkflowRunStarted,
  WorkflowRunEnded,
  WorkflowDeleted,
]);
export type WorkflowEvent = z.infer<typeof WorkflowEvent>;

/** Returns the id of a workflow's event stream. */
export const workflowStream = (workflowId: string): string => `workflow-${workflowId}`;
