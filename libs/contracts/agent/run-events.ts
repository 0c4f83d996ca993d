import { z } from 'zod';
import { RunInputs, WorkflowDefinition } from './workflow-definition.js';

const event = <T extends string, S extends z.ZodRawShape>(type: T, data: S) =>
  z.object({ type: z.literal(type), schemaVersion: z.literal(1), data: z.object(data) });

const task = { runId: z.uuid(), nodeId: z.string() };
const attempt = { ...task, attempt: z.int().positive() };

/** The accepted fact: from here on the run ends in exactly one terminal event. It carries all that the run needs. */
export const RunStarted = event('RunStarted', {
  runId: z.uuid(),
  /** Null for a definition that was started without being saved. */
  workflowId: z.uuid().nullable(),
  workflowVersion: z.int().positive().nullable(),
  definition: WorkflowDefinition,
  inputs: RunInputs,
  startedAt: z.iso.datetime(),
});
/** Everything that the task needs has completed. */
export const TaskReady = event('TaskReady', { ...task, readyAt: z.iso.datetime() });
/** A turn of its agent was accepted for it, in a session of its own. */
export const TaskStarted = event('TaskStarted', {
  ...attempt,
  agentId: z.string(),
  sessionId: z.uuid(),
  turnId: z.uuid(),
  startedAt: z.iso.datetime(),
});
/** Its turn failed in a way that may pass: another one follows. */
export const TaskAttemptFailed = event('TaskAttemptFailed', {
  ...attempt,
  code: z.string(),
  message: z.string(),
  failedAt: z.iso.datetime(),
});
/** The artifact of a task: what its turn said last, for those that need it. */
export const TaskCompleted = event('TaskCompleted', {
  ...attempt,
  output: z.string(),
  completedAt: z.iso.datetime(),
});
export const TaskFailed = event('TaskFailed', {
  ...attempt,
  code: z.string(),
  message: z.string(),
  failedAt: z.iso.datetime(),
});
export const TaskCancelled = event('TaskCancelled', { ...task, cancelledAt: z.iso.datetime() });
export const RunCancelRequested = event('RunCancelRequested', {
  runId: z.uuid(),
  requestedAt: z.iso.datetime(),
});
export const RunCompleted = event('RunCompleted', { runId: z.uuid(), completedAt: z.iso.datetime() });
/** Nothing more can be done: these tasks failed, and those that need them never began. */
export const RunFailed = event('RunFailed', {
  runId: z.uuid(),
  failedNodes: z.array(z.string()),
  failedAt: z.iso.datetime(),
});
export const RunCancelled = event('RunCancelled', { runId: z.uuid(), cancelledAt: z.iso.datetime() });

/** Every event of a `run-<id>` stream. */
export const RunEvent = z.discriminatedUnion('type', [
  RunStarted,
  TaskReady,
  TaskStarted,
  TaskAttemptFailed,
  TaskCompleted,
  TaskFailed,
  TaskCancelled,
  RunCancelRequested,
  RunCompleted,
  RunFailed,
  RunCancelled,
]);
export type RunEvent = z.infer<typeof RunEvent>;

export const runStream = (runId: string): string => `run-${runId}`;
/** Id of the Temporal workflow that carries a run out (contract §6). */
export const runWorkflowId = (runId: string): string => `run/${runId}`;
