export { openTemporal, TEMPORAL_NAMESPACE } from './temporal-link.js';
export type { TemporalLink } from './temporal-link.js';
export { listOpenWorkflows } from './open-workflows.js';
export { ensureSchedules } from './schedules.js';
export type { ScheduleSpec } from './schedules.js';
export { signalWorkflow, startWorkflowOnce } from './start-workflow.js';
export type { WorkflowToStart } from './start-workflow.js';
export { startWorker } from './worker-host.js';
export type { RunningWorker, WorkerSettings } from './worker-host.js';
