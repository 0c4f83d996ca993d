import type { AgentConfig, AntiphonConfig, ProviderConfig } from './antiphon-config.js';
import { isSet } from './build-config.js';
import type { Environment } from './build-config.js';
import { CALL_LIMIT_KEYS, CALL_LIMIT_NAMES, resolveCallLimits } from './call-limits.js';
import type { ResolvedLimits } from './call-limits.js';
import { PROVIDER_FACTS } from './provider-kinds.js';
import type { ProviderKind } from './provider-kinds.js';
import { chooseProxy, proxyAddress } from './provider-proxy.js';
import { withoutUrlSecrets } from './provider-url.js';

/** Limit as it applies, in the unit of the file. */
export interface ShownLimit {
  readonly value: number | boolean | null;
  /** Place that sets it, such as `provider x`, `agent main` or `default`. */
  readonly from: string;
}
/** Limits by the keys of the file. */
export type ShownLimits = Readonly<Record<string, ShownLimit>>;

/** Agent whose calls a provider makes, as its own one or as its fallback. */
export interface AgentOfProvider {
  readonly id: string;
  readonly model: string;
  readonly isFallback: boolean;
  readonly limits: ShownLimits;
}

/** Provider as its calls see it, without secrets. */
export interface ShownProvider {
  readonly name: string;
  readonly kind: ProviderKind;
  readonly baseUrl: string | null;
  /** Variable of the key; null where none is needed. */
  readonly keyVariable: string | null;
  readonly isKeySet: boolean;
  readonly storedKey: boolean;
  /** Address of the proxy without user and password; null for a direct connection. */
  readonly proxy: string | null;
  /** Setting or variable of the proxy, or the reason for a direct connection. */
  readonly proxyFrom: string;
  readonly caFile: string | null;
  readonly limits: ShownLimits;
  readonly agents: readonly AgentOfProvider[];
}

/** Model that stands for any: each model has a default of its own. */
const ANY_MODEL = 'the model';

const toShown = (limits: ResolvedLimits, isAnyModel: boolean): ShownLimits =>
  Object.fromEntries(
    CALL_LIMIT_NAMES.map((name) => {
      const value = limits[name];
      const from = limits.origins[name];
      const isByModel = isAnyModel && name === 'maxOutputTokens' && from === `default of ${ANY_MODEL}`;
      const inUnit = name.endsWith('Ms') && typeof value === 'number' ? value / 1_000 : value;
      return [CALL_LIMIT_KEYS[name], { value: isByModel ? null : inUnit, from }];
    }),
  );

const agentsOf = (provider: ProviderConfig, agents: readonly AgentConfig[]): AgentOfProvider[] =>
  agents.flatMap((agent) => {
    const uses = [
      { provider: agent.provider, model: agent.model, isFallback: false },
      ...(agent.fallback ? [{ ...agent.fallback, isFallback: true }] : []),
    ];
    return uses
      .filter((use) => use.provider === provider.name)
      .map(({ model, isFallback }) => ({
        ...{ id: agent.id, model, isFallback },
        limits: toShown(resolveCallLimits(provider, model, agent), false),
      }));
  });

const describeRoute = (
  provider: ProviderConfig,
  baseUrl: string | null,
  env: Environment,
): Pick<ShownProvider, 'proxy' | 'proxyFrom'> => {
  const url = URL.parse(baseUrl ?? '');
  if (url === null || !/^https?:$/.test(url.protocol)) return { proxy: null, proxyFrom: 'no address' };
  const choice = chooseProxy(provider, url, env);
  if (choice.kind === 'proxy') return { proxy: proxyAddress(choice.url), proxyFrom: choice.from };
  return { proxy: null, proxyFrom: choice.kind === 'direct' ? choice.reason : `not usable: ${choice.from}` };
};

/** Returns the providers with the limits and the way of their calls, and where each comes from. */
export const describeProviders = (
  { providers, agents }: Pick<AntiphonConfig, 'providers' | 'agents'>,
  env: Environment,
): ShownProvider[] =>
  providers.map((provider) => {
    const { name, kind, storedKey, caFile = null } = provider;
    const keyVariable = provider.apiKeyEnv ?? PROVIDER_FACTS[kind].keyVariable;
    const baseUrl = provider.baseUrl ?? PROVIDER_FACTS[kind].baseUrl;
    return {
      ...{ name, kind, storedKey, caFile, keyVariable },
      baseUrl: baseUrl === null ? null : withoutUrlSecrets(baseUrl),
      isKeySet: keyVariable !== null && isSet(env, keyVariable),
      ...describeRoute(provider, baseUrl, env),
      limits: toShown(resolveCallLimits(provider, ANY_MODEL), true),
      agents: agentsOf(provider, agents),
    };
  });
