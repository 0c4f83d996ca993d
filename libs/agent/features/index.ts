export { AgentModule } from './agent.module.js';
