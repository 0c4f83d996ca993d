export { WorkerPool } from './worker-pool.js';
export type { Jobs, PoolJob, PoolOptions } from './worker-pool.js';
