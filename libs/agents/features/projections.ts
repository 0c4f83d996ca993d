export { projectAgents } from './lifecycle/agent-agents.projection.js';
