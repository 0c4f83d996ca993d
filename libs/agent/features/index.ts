export { AgentModule } from './agent.module.js';
export { AGENT_SERVICES } from './agent.tokens.js';
