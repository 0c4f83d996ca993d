export { TEXT_DEADLINE_MS, WorkerPool, textJobsOf, textWork } from './worker-pool.js';
export type { Jobs, PoolJob, PoolOptions, ThreadJobs } from './worker-pool.js';
