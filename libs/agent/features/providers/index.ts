export { createModels } from './create-models.js';
export type { Models, ModelsOptions } from './create-models.js';
export { describeProvider } from './provider-settings.js';
export type { ProviderDescription } from './provider-settings.js';
export { SCRIPTED_LABEL } from './scripted/play-scenario.js';
export { DEFAULT_PROVIDER_LIMITS } from './transport/provider-call.js';
export type { ProviderLimits } from './transport/provider-call.js';
