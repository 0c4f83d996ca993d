import type { PlanCommand, PlanFold, planDecider, renderPlan } from '@antiphon/orchestration-domain';
import type { WorkflowDefinition, WorkflowSource } from '@antiphon/contracts/agent';
import { textJobsOf } from '@antiphon/service-host/worker-pool';

/** Functions that threads run. */
export type WorkJobs = {
  readonly decidePlan: (
    plan: readonly [command: PlanCommand, state: PlanFold],
  ) => ReturnType<typeof planDecider.decide>;
  readonly renderPlan: (document: Parameters<typeof renderPlan>[0]) => Uint8Array;
  readonly parseDefinition: (source: WorkflowSource) => Promise<WorkflowDefinition>;
};

export const workJobs = textJobsOf<WorkJobs>(import.meta.url);
