export {
  DEFAULT_PROVIDER_LIMITS,
  SCRIPTED_LABEL,
  createModels,
  describeProvider,
} from './providers/index.js';
export type { Models, ModelsOptions, ProviderDescription, ProviderLimits } from './providers/index.js';
export { AgentModule } from './agent.module.js';
export { createAgentRuntime } from './agent-runtime.js';
export type { AgentRuntime, AgentRuntimeOptions } from './agent-runtime.js';
