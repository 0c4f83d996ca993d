import { z } from 'zod';
import { IdempotencyKey } from '../agent/requests.js';
import { RunInputs, WORKFLOW_LIMITS } from '../agent/workflow-definition.js';

export const Id = z.uuid('the id must be a UUID');
export const Key = IdempotencyKey.optional();
export const Json = z.record(z.string(), z.json());

/** A definition: YAML text, its JSON, or `{definition, draft}`. */
export const WorkflowBody = z
  .union([
    z.string().min(1).max(WORKFLOW_LIMITS.sourceLength),
    z.strictObject({
      definition: z.union([z.string().min(1).max(WORKFLOW_LIMITS.sourceLength), Json]),
      draft: z.boolean().optional(),
    }),
    Json,
  ])
  .transform((body) =>
    typeof body === 'string' || !('definition' in body)
      ? { source: body, draft: false }
      : { source: body.definition as string | z.output<typeof Json>, draft: body.draft === true },
  );

export const StartBody = z.preprocess((body) => body ?? {}, z.strictObject({ inputs: RunInputs.optional() }));
export const RunBody = z.strictObject({
  workflow: z.union([z.string().min(1).max(WORKFLOW_LIMITS.sourceLength), Json]),
  inputs: RunInputs.optional(),
});
