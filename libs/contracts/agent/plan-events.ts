import { z } from 'zod';
import { Cause, event, eventOfCause } from '../log/stored-event.js';

/** Maximum number of steps of a plan. */
export const MAX_PLAN_STEPS = 200;
/** Maximum length of a step's line and of the text below it, UTF-16 units. */
export const MAX_STEP_TEXT = 2_000;
export const MAX_STEP_BODY = 20_000;
/** Ending of the path of a plan's file. */
export const PLAN_SUFFIX = '.plan.md';

/** Id of a step within its plan: `s1`, `s2`, and so on. It is never used again. */
export const PlanStepId = z.string().regex(/^s[1-9][0-9]{0,5}$/);

/** A check box at the top level of a `.plan.md` file, with the lines below it. */
export const PlanStepText = z.object({
  stepId: PlanStepId,
  /** The line after the box. */
  text: z.string().min(1).max(MAX_STEP_TEXT),
  /** Lines from there to the next step, such as notes and nested lists, each with a line feed. */
  body: z.string().max(MAX_STEP_BODY),
});
export type PlanStepText = z.infer<typeof PlanStepText>;

/**
 * Source of a step's completion. `tool`: a successful tool call of the step's turn. `person`: a
 * person ticked the box. `none`: the agent declared that nothing can verify the step.
 */
export const PlanEvidence = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('tool'),
    tool: z.string(),
    callId: z.uuid(),
    sessionId: z.uuid(),
    turnId: z.uuid(),
  }),
  z.object({ kind: z.literal('person'), caller: z.string() }),
  z.object({ kind: z.literal('none'), reason: z.string().min(1).max(2_000) }),
]);
export type PlanEvidence = z.infer<typeof PlanEvidence>;

/** Text of the file before the first step, and its line endings. */
const PlanHead = z.object({ head: z.string().max(MAX_STEP_BODY), eol: z.enum(['lf', 'crlf']) });

const change = {
  planId: z.uuid(),
  /** Path of its file. */
  path: z.string(),
  /** `agent/<id>`, the caller of a request, or `runtime`. */
  actor: z.string().min(1).max(200),
  /** Agent that made the change or works on the plan; its subscribers get a frame. Null for none. */
  agentId: z.string().nullable(),
  at: z.iso.datetime(),
};
const stepChange = { ...change, stepId: PlanStepId };

/** A plan exists from here on, with at least one step. */
export const PlanCreated = event('PlanCreated', {
  ...change,
  treeId: z.uuid(),
  ...PlanHead.shape,
  steps: z.array(PlanStepText).min(1).max(MAX_PLAN_STEPS),
});
export const PlanStepAdded = event('PlanStepAdded', {
  ...change,
  ...PlanStepText.shape,
  /** Step that it follows; null for the first place. */
  after: PlanStepId.nullable(),
});
export const PlanStepRemoved = event('PlanStepRemoved', stepChange);
export const PlanStepReworded = event('PlanStepReworded', { ...change, ...PlanStepText.shape });
/** The order of all steps. */
export const PlanStepsReordered = event('PlanStepsReordered', {
  ...change,
  order: z.array(PlanStepId).min(1).max(MAX_PLAN_STEPS),
});
/** The text of the file before the first step changed, or its line endings. */
export const PlanHeadChanged = event('PlanHeadChanged', { ...change, ...PlanHead.shape });
export const PlanStepStarted = event('PlanStepStarted', {
  ...stepChange,
  runId: z.uuid().nullable(),
  sessionId: z.uuid().nullable(),
  turnId: z.uuid().nullable(),
});
/** The box of the step is ticked from here on. */
export const PlanStepCompleted = event('PlanStepCompleted', {
  ...stepChange,
  evidence: PlanEvidence,
  note: z.string().max(2_000).nullable(),
});
export const PlanStepFailed = eventOfCause('PlanStepFailed', {
  ...stepChange,
  code: z.string().max(200),
  cause: Cause,
});
/** A person removed the tick, or a failed or interrupted step is to be done again. */
export const PlanStepReopened = event('PlanStepReopened', stepChange);

/** A part of an edit of the file that contradicts the facts. The facts stay as they are. */
export const PlanConflict = z.object({
  kind: z.enum([
    /** The file has no step at the top level. Nothing of it is taken over. */
    'no_steps',
    /** The file exceeds a limit of plans. Nothing of it is taken over. */
    'too_large',
    /** Both the edit and a fact after its base changed the same step. */
    'step_changed',
    /** The edit removed a step that changed after its base, or that is in progress. */
    'step_removed',
    /** An agent ticked a box without evidence, or removed a tick. */
    'tick_without_evidence',
    /** The edit removed a tick that its author did not know of. */
    'untick_of_newer',
    /** Both changed the order. */
    'order_changed',
    /** Both changed the text before the first step. */
    'head_changed',
  ]),
  stepId: PlanStepId.nullable(),
  /** Text of the facts, and of the file. */
  ours: z.string().max(2_000),
  theirs: z.string().max(2_000),
});
export type PlanConflict = z.infer<typeof PlanConflict>;
export const PlanEditConflicted = event('PlanEditConflicted', {
  ...change,
  /** SHA-256 (hex) of the edited file: the history of the file has its text. */
  digest: z.string(),
  conflicts: z.array(PlanConflict).min(1).max(500),
});
/** The caller took the facts: no conflict is left, and the file shows the facts. */
export const PlanConflictsSettled = event('PlanConflictsSettled', change);
/** The file of the plan has this content, which is the plan after the events before this one. */
export const PlanFileRendered = event('PlanFileRendered', {
  ...change,
  digest: z.string(),
  /** Number of ticked boxes, and of boxes. */
  done: z.int().nonnegative(),
  steps: z.int().nonnegative(),
});

/** An agent does the open steps one after another. Exactly one `PlanRunEnded` follows. */
export const PlanRunStarted = event('PlanRunStarted', {
  ...change,
  runId: z.uuid(),
  /** Maximum number of turns of the run. */
  maxTurns: z.int().positive().max(1_000),
});
export const PlanRunStopRequested = event('PlanRunStopRequested', { ...change, runId: z.uuid() });
export const PlanRunEnded = eventOfCause('PlanRunEnded', {
  ...change,
  runId: z.uuid(),
  reason: z.enum([
    'completed',
    'step_failed',
    'stopped',
    'agent_gone',
    'turn_limit',
    'plan_removed',
    /** An error that a retry does not change, or repeated errors; the cause has the error. */
    'failed',
  ]),
  cause: Cause.nullable(),
});

/** Every event of a `plan-<id>` stream. */
export const PlanEvent = z.discriminatedUnion('type', [
  PlanCreated,
  PlanStepAdded,
  PlanStepRemoved,
  PlanStepReworded,
  PlanStepsReordered,
  PlanHeadChanged,
  PlanStepStarted,
  PlanStepCompleted,
  PlanStepFailed,
  PlanStepReopened,
  PlanEditConflicted,
  PlanConflictsSettled,
  PlanFileRendered,
  PlanRunStarted,
  PlanRunStopRequested,
  PlanRunEnded,
]);
export type PlanEvent = z.infer<typeof PlanEvent>;

export const planStream = (planId: string): string => `plan-${planId}`;
