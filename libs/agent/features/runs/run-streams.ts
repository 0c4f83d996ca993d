import type pg from 'pg';
import { RunEvent, WorkflowEvent, runStream, workflowStream } from '@antiphon/contracts/agent';
import { runDecider, workflowDecider } from '@antiphon/agent-domain';
import type { RunCommand, RunState, WorkflowCommand, WorkflowState } from '@antiphon/agent-domain';
import type { AntiphonConfig } from '@antiphon/config';
import type { EventStore, PastReads, StreamAppend } from '@antiphon/event-store';
import { isoTime } from '@antiphon/kernel';
import type { Clock, Ids } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { toNewEvent } from '../event-envelope.js';
import { StreamStore } from '../stream-store.js';

/** Event streams of workflows and runs. */
export interface RunStreams {
  readonly workflows: StreamStore<WorkflowState, WorkflowCommand, WorkflowEvent>;
  readonly runs: StreamStore<RunState, RunCommand, RunEvent>;
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

export const createRunServices = (platform: RunPlatform): RunServices => {
  const { config, store, pool, clock, ids, logger, past } = platform;
  const workflows = { decider: workflowDecider, schema: WorkflowEvent, streamOf: workflowStream };
  const runs = { decider: runDecider, schema: RunEvent, streamOf: runStream };
  return {
    ...{ config, store, pool, clock, ids, logger, past },
    workflows: new StreamStore({ store, ids, ...workflows }),
    runs: new StreamStore({ store, ids, ...runs }),
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
