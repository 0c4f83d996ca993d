// The queue of tasks without the rest of the service, for the benchmark.
export { ExternalClaims } from './tasks/external-claims.handler.js';
export { OpenTasks } from './tasks/open-tasks.js';
export { KnownAgents } from './tasks/task-agents.js';
export { TaskStreams } from './tasks/task-streams.js';
export { WaitReasons } from './tasks/wait-reasons.js';
export { Tasks } from './tasks/tasks.handler.js';
