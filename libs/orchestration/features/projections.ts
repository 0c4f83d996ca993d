export { agentRuns } from './runs/agent-runs.projection.js';
export { agentTasks } from './tasks/agent-tasks.projection.js';
