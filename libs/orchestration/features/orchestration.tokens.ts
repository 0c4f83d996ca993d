import type { TurnCommands } from '@antiphon/conversation-features';
import { createToken } from '@antiphon/service-host';
import type { PlanTimes } from './plans/plan-runs.js';
import type { DelegationTimes } from './tasks/delegation.js';
import type { TaskOf } from './tasks/task-budgets.js';
import type { TemporalQueue, TemporalRuns, WorkerSettings } from './temporal/run-worker.js';

export { MAX_OPEN_TASKS } from './tasks/open-tasks.js';

/** Finds the task that a turn counts towards. */
export const TASK_OF = createToken<TaskOf>('TASK_OF');
/** Commands of turns that any agent process carries out. */
export const TURNS_ANYWHERE = createToken<TurnCommands>('TURNS_ANYWHERE');
export const DELEGATION_TIMES = createToken<DelegationTimes>('DELEGATION_TIMES');
export const PLAN_TIMES = createToken<PlanTimes>('PLAN_TIMES');
export const WORKER_SETTINGS = createToken<WorkerSettings>('WORKER_SETTINGS');
/** Null without Temporal. */
export const TEMPORAL_QUEUE = createToken<TemporalQueue | null>('TEMPORAL_QUEUE');
/** Null without Temporal. */
export const TEMPORAL_RUNS = createToken<TemporalRuns | null>('TEMPORAL_RUNS');
