import type pg from 'pg';
import { RunEvent, WorkflowEvent, runStream, workflowStream } from '@antiphon/contracts/agent';
import { runDecider, workflowDecider } from '@antiphon/orchestration-domain';
import type { RunState, WorkflowState } from '@antiphon/orchestration-domain';
import type { AntiphonConfig } from '@antiphon/config';
import { AggregateStore } from '@antiphon/event-store';
import type { EventStore, PastReads, StreamAppend } from '@antiphon/event-store';
import { isoTime } from '@antiphon/kernel';
import type { Clock, Ids } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { eventForms, toNewEvent } from '@antiphon/agent-log';

/** Event streams of workflows and runs. */
export interface RunStreams {
  readonly workflows: AggregateStore<WorkflowState, WorkflowEvent>;
  readonly runs: AggregateStore<RunState, RunEvent>;
}

/** Platform services that workflows and runs use. */
export interface RunPlatform {
  readonly config: AntiphonConfig;
  readonly store: EventStore;
  readonly pool: pg.Pool;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly logger: Logger;
  readonly past: PastReads;
}

/** Dependencies of this folder's handlers; each of them declares those that it uses. */
export type RunServices = RunPlatform & RunStreams;

/** Injection token of `RunServices`. */
export const RUN_SERVICES = Symbol('RUN_SERVICES');

/** Error of an event of a newer version. */
const UNKNOWN = 'WORKFLOW.EVENT_UNKNOWN';

export const createRunServices = (platform: RunPlatform): RunServices => {
  const { config, store, pool, clock, ids, logger, past } = platform;
  return {
    ...{ config, store, pool, clock, ids, logger, past },
    workflows: new AggregateStore({
      ...{ store, decider: workflowDecider, ...eventForms(WorkflowEvent, ids, UNKNOWN) },
      streamOf: (_workspace, id) => workflowStream(id),
    }),
    runs: new AggregateStore({
      ...{ store, decider: runDecider, ...eventForms(RunEvent, ids, UNKNOWN) },
      streamOf: (_workspace, id) => runStream(id),
    }),
  };
};

const END_STATUS = { RunCompleted: 'completed', RunFailed: 'failed', RunCancelled: 'cancelled' } as const;
const isRunEnd = (type: string): type is keyof typeof END_STATUS => type in END_STATUS;

/**
 * Returns the append that records a run's end in its workflow's event stream. It checks no version:
 * a run starts in that stream and ends exactly once, independent of the workflow's other events.
 */
export const runEndAppends = (
  { ids, clock }: Pick<RunServices, 'ids' | 'clock'>,
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
