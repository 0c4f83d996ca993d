import { z } from 'zod';
import { Cause, event, eventOfCause } from '../log/stored-event.js';
import { RunInputs, WorkflowDefinition } from './workflow-definition.js';

const task = { runId: z.uuid(), nodeId: z.string() };
const attempt = { ...task, attempt: z.int().positive() };

/** The run is accepted, with all that it needs. Exactly one terminal event follows. */
export const RunStarted = event('RunStarted', {
  runId: z.uuid(),
  /** Null for a run of a definition that was not saved. */
  workflowId: z.uuid().nullable(),
  workflowVersion: z.int().positive().nullable(),
  definition: WorkflowDefinition,
  inputs: RunInputs,
  startedAt: z.iso.datetime(),
});
/** All tasks that this task needs have completed. */
export const TaskReady = event('TaskReady', { ...task, readyAt: z.iso.datetime() });
/** A turn for the task was accepted, in a session of its own. */
export const TaskStarted = event('TaskStarted', {
  ...attempt,
  agentId: z.string(),
  sessionId: z.uuid(),
  turnId: z.uuid(),
  startedAt: z.iso.datetime(),
});
/** The turn of the task failed with a transient error. Another attempt follows. */
export const TaskAttemptFailed = eventOfCause('TaskAttemptFailed', {
  ...attempt,
  code: z.string(),
  cause: Cause,
  failedAt: z.iso.datetime(),
});
/** The task completed. `output` is the last answer of its turn, for the tasks that need it. */
export const TaskCompleted = event('TaskCompleted', {
  ...attempt,
  output: z.string(),
  completedAt: z.iso.datetime(),
});
export const TaskFailed = eventOfCause('TaskFailed', {
  ...attempt,
  code: z.string(),
  cause: Cause,
  failedAt: z.iso.datetime(),
});
export const TaskCancelled = event('TaskCancelled', { ...task, cancelledAt: z.iso.datetime() });
export const RunCancelRequested = event('RunCancelRequested', {
  runId: z.uuid(),
  requestedAt: z.iso.datetime(),
});
export const RunCompleted = event('RunCompleted', { runId: z.uuid(), completedAt: z.iso.datetime() });
/** The run failed: the listed tasks failed, and the tasks that need them did not start. */
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

/** Returns the id of a run's event stream. */
export const runStream = (runId: string): string => `run-${runId}`;
/** Returns the id of the Temporal workflow that executes a run. */
export const runWorkflowId = (runId: string): string => `run/${runId}`;
