import type { ProviderView } from '@antiphon/contracts/agent';
import { PROVIDER_FACTS, factsOfKind, withoutUrlSecrets } from '@antiphon/config';
import type { ProviderConfig } from '@antiphon/config';
import type { ConnectedProvider, OpenCircuit } from '@antiphon/providers-domain';
import { describeProvider, keyOf } from '../adapters/provider-settings.js';
import type { Environment } from '../adapters/provider-settings.js';

const pausedBy = (circuit: OpenCircuit | null): ProviderView['paused'] =>
  circuit ? { until: circuit.until } : null;

/** Returns a connected provider as clients see it. */
export const connectedView = (
  { name, kind, baseUrl, credentialId, connectedBy, connectedAt }: ConnectedProvider,
  circuit: OpenCircuit | null,
): ProviderView => {
  const facts = factsOfKind(kind);
  return {
    ...{ name, kind, origin: 'connected', keyVariable: null, scripted: false, connectedBy, connectedAt },
    baseUrl: withoutUrlSecrets(baseUrl ?? facts?.baseUrl ?? ''),
    key: credentialId === null ? 'none' : 'stored',
    ready: facts !== null && (credentialId !== null || facts.keyVariable === null),
    defaultModel: facts?.defaultModel ?? null,
    paused: pausedBy(circuit),
  };
};

/** Returns a configured provider as clients see it. */
export const configuredView = (
  provider: ProviderConfig,
  env: Environment,
  hasStoredKey: boolean,
  circuit: OpenCircuit | null,
): ProviderView => {
  const { name, kind, baseUrl, keyVariable, scripted } = describeProvider(provider, env);
  const hasVariable = keyOf(provider, env).value !== null;
  const key = hasStoredKey ? 'stored' : hasVariable ? 'variable' : 'none';
  const needsKey = keyVariable !== null || PROVIDER_FACTS[kind].keyVariable !== null;
  return {
    ...{ name, kind, baseUrl, origin: 'configuration', key, keyVariable, scripted },
    ready: key !== 'none' || !needsKey,
    defaultModel: PROVIDER_FACTS[kind].defaultModel,
    paused: pausedBy(circuit),
    ...{ connectedBy: null, connectedAt: null },
  };
};
