export {
  readTemporalServer,
  temporalServer,
  toClientOptions,
  toConnectionOptions,
} from './temporal-server.js';
export type { TemporalServer } from './temporal-server.js';
export { openTemporal, TEMPORAL_NAMESPACE } from './temporal-link.js';
export type { TemporalLink } from './temporal-link.js';
export { startWorker } from './worker-host.js';
export type { RunningWorker, WorkerSettings } from './worker-host.js';
export { ensureSchedules, listOpenWorkflows, signalWorkflow, startWorkflowOnce } from './workflows.js';
export type { ScheduleSpec, WorkflowToStart } from './workflows.js';
