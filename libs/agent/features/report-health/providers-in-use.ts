import type { AntiphonConfig } from '@antiphon/config';
import type { JsonValue } from '@antiphon/kernel';
import { describeProvider } from '../providers/index.js';
import type { Environment } from '../providers/provider-settings.js';

/** The providers that agents are configured with, default agent's first; `scripted` marks answers that no model wrote. */
export const providersInUse = (config: AntiphonConfig, env: Environment): JsonValue => {
  const names = config.agents.flatMap(({ provider, fallback }) => [
    provider,
    ...(fallback ? [fallback.provider] : []),
  ]);
  return [...new Set(names)].flatMap((name) => {
    const provider = config.providers.find((configured) => configured.name === name);
    return provider ? [{ ...describeProvider(provider, env) }] : [];
  });
};
