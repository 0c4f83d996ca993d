import type pg from 'pg';
import { RunEvent, WorkflowEvent, runStream, workflowStream } from '@antiphon/contracts/agent';
import { runDecider, workflowDecider } from '@antiphon/agent-domain';
import type { RunState, WorkflowState } from '@antiphon/agent-domain';
import type { AntiphonConfig } from '@antiphon/config';
import type { EventStore } from '@antiphon/event-store';
import type { Clock, Ids } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { createEventFold } from './run-streams.js';
import type { EventFold } from './run-streams.js';

export interface WorkflowHouse {
  readonly config: AntiphonConfig;
  readonly store: EventStore;
  readonly pool: pg.Pool;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly logger: Logger;
}

/** What the slices about workflows and runs work with. */
export interface WorkflowServices extends WorkflowHouse {
  readonly workflows: EventFold<WorkflowState, WorkflowEvent>;
  readonly runs: EventFold<RunState, RunEvent>;
}

export const createWorkflowServices = (house: WorkflowHouse): WorkflowServices => {
  const { store, ids } = house;
  return {
    ...house,
    workflows: createEventFold({
      store,
      ids,
      decider: workflowDecider,
      schema: WorkflowEvent,
      streamOf: workflowStream,
    }),
    runs: createEventFold({ store, ids, decider: runDecider, schema: RunEvent, streamOf: runStream }),
  };
};
