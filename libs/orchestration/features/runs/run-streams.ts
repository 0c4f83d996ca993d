import { RunEvent, WorkflowEvent, runStream, workflowStream } from '@antiphon/contracts/agent';
import { runDecider, workflowDecider } from '@antiphon/orchestration-domain';
import type { RunState, WorkflowState } from '@antiphon/orchestration-domain';
import { AggregateStore } from '@antiphon/event-store';
import type { EventStore, StreamAppend } from '@antiphon/event-store';
import { isoTime } from '@antiphon/kernel';
import type { Clock, Ids } from '@antiphon/kernel';
import { createToken } from '@antiphon/service-host';
import { eventForms, toNewEvent } from '@antiphon/agent-log';

/** Event streams of workflows. */
export type WorkflowStreams = AggregateStore<WorkflowState, WorkflowEvent>;
/** Event streams of runs. */
export type RunStreams = AggregateStore<RunState, RunEvent>;

export const WORKFLOW_STREAMS = createToken<WorkflowStreams>('WORKFLOW_STREAMS');
export const RUN_STREAMS = createToken<RunStreams>('RUN_STREAMS');

/** Error of an event of a newer version. */
const UNKNOWN = 'WORKFLOW.EVENT_UNKNOWN';

export const createWorkflowStreams = (store: EventStore, ids: Ids): WorkflowStreams =>
  new AggregateStore({
    ...{ store, decider: workflowDecider, ...eventForms(WorkflowEvent, ids, UNKNOWN) },
    streamOf: (_workspace, id) => workflowStream(id),
  });

export const createRunStreams = (store: EventStore, ids: Ids): RunStreams =>
  new AggregateStore({
    ...{ store, decider: runDecider, ...eventForms(RunEvent, ids, UNKNOWN) },
    streamOf: (_workspace, id) => runStream(id),
  });

const END_STATUS = { RunCompleted: 'completed', RunFailed: 'failed', RunCancelled: 'cancelled' } as const;
const isRunEnd = (type: string): type is keyof typeof END_STATUS => type in END_STATUS;

/**
 * Returns the append that records a run's end in its workflow's event stream. It checks no version:
 * a run starts in that stream and ends exactly once, independent of the workflow's other events.
 */
export const runEndAppends = (
  { ids, clock }: { readonly ids: Ids; readonly clock: Clock },
  { started }: RunState,
  events: readonly RunEvent[],
): StreamAppend[] => {
  const end = events.map(({ type }) => type).find(isRunEnd);
  const workflowId = started?.workflowId ?? null;
  if (end === undefined || workflowId === null) return [];
  const data = { workflowId, runId: started?.runId ?? '', status: END_STATUS[end], endedAt: isoTime(clock) };
  const event = { type: 'WorkflowRunEnded', schemaVersion: 1, data };
  return [{ streamId: workflowStream(workflowId), expectedVersion: 'any', events: [toNewEvent(event, ids)] }];
};
