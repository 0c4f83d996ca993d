// The queue of tasks without the rest of the service, for the benchmark.
export { ExternalClaims } from './tasks/external-claims.handler.js';
export { Tasks } from './tasks/tasks.handler.js';
export { TasksRuntime } from './tasks/tasks-runtime.js';
