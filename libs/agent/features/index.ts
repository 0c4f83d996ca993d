export {
  DEFAULT_PROVIDER_LIMITS,
  SCRIPTED_LABEL,
  createModels,
  describeProvider,
} from './providers/index.js';
export type { Models, ModelsOptions, ProviderDescription, ProviderLimits } from './providers/index.js';
export { AgentModule } from './agent.module.js';
