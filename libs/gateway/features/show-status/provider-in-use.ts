import type { AntiphonConfig } from '@antiphon/config';

/** The default agent's provider; `scripted` shows as such, so that nobody takes its answers for a model's. */
export const providerInUse = (config: AntiphonConfig): { name: string; kind: string; model: string } => {
  const agent = config.agents[0];
  const provider = config.providers.find(({ name }) => name === agent?.provider);
  return { name: provider?.name ?? '', kind: provider?.kind ?? '', model: agent?.model ?? '' };
};
