import { PROVIDER_FACTS, keyVariablesOf, withoutUrlSecrets } from '@antiphon/config';
import type { AntiphonConfig, ProviderConfig, ProviderKind } from '@antiphon/config';
import { invalid, type JsonValue } from '@antiphon/kernel';

/** Environment variables, as in `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The variable and the value of a provider's key. Each is null where there is none. */
export interface ProviderKey {
  readonly variable: string | null;
  readonly value: string | null;
}

/** Reads a provider's key, without the line break at the end of a secret's file. */
export const keyOf = (provider: ProviderConfig, env: Environment): ProviderKey => {
  const [variable = null, ...more] = keyVariablesOf(provider);
  const valueOf = (name: string | null): string => (name === null ? '' : (env[name] ?? '').trim());
  // The parts of an access key are one value, as a stored key has them.
  const value = [variable, ...more].map(valueOf).filter(Boolean).join(':');
  return { variable, value: valueOf(variable) === '' ? null : value };
};

/**
 * Returns the parts of a key that must not be shown. Of an access key, the id is none: it is a part
 * of signed requests.
 */
export const secretParts = ({ kind }: Pick<ProviderConfig, 'kind'>, value: string | null): string[] => {
  if (value === null) return [];
  if (kind !== 'bedrock' || !value.includes(':')) return [value];
  const [, secret = '', ...token] = value.split(':');
  return [value, secret, token.join(':')].filter((part) => part !== '');
};

/** Returns true if a call without a key would fail. Such a call is not sent. */
export const needsKey = ({ kind, apiKeyEnv }: ProviderConfig): boolean =>
  apiKeyEnv !== null || PROVIDER_FACTS[kind].keyVariable !== null;

const withoutVersion = (url: string): string => url.replace(/(?<!\/)\/+$/, '').replace(/\/v1(?=\?|$)/, '');

/** Paths of addresses that name only a host. */
const DEFAULT_PATHS: Partial<Record<ProviderKind, string>> = {
  ollama: '/v1',
  gemini: '/v1beta',
  'azure-openai': '/openai/v1',
};

const withPath = (url: URL, path: string): string => {
  url.pathname = path;
  return url.href;
};

/**
 * Returns the base of a provider's paths, without a slash at the end. The `/v1` of Anthropic's
 * paths is removed. The paths of Ollama, Gemini and Azure are added. Every other address stays as
 * written, as in OpenAI's SDKs.
 */
export const baseUrlOf = ({ name, kind, baseUrl }: ProviderConfig): string => {
  const given = baseUrl ?? PROVIDER_FACTS[kind].baseUrl;
  if (given === null)
    throw invalid('PROVIDER.BASE_URL_MISSING', `provider ${name}: the kind ${kind} needs a base_url`);
  const url = URL.parse(given);
  if (url === null || !/^https?:$/.test(url.protocol))
    throw invalid('PROVIDER.BASE_URL_INVALID', `provider ${name}: base_url is not an http or https URL`);
  const plain = given.replace(/(?<!\/)\/+$/, '');
  if (kind === 'anthropic') return withoutVersion(plain);
  const missing = url.pathname === '/' ? DEFAULT_PATHS[kind] : undefined;
  return missing === undefined ? plain : withPath(url, missing);
};

/** Returns the address of a path below a base address. A query of the base, such as a key, remains. */
export const endpointOf = (baseUrl: string, path: string): URL => {
  const url = new URL(baseUrl);
  url.pathname = url.pathname.replace(/(?<!\/)\/+$/, '') + path;
  return url;
};

/** Returns what may be a secret within a provider's address: its password and values of its query. */
export const secretsInUrl = ({ baseUrl }: ProviderConfig): string[] => {
  const url = URL.parse(baseUrl ?? '');
  if (url === null) return [];
  return [decodeURIComponent(url.password), ...url.searchParams.values()].filter((text) => text !== '');
};

/** A provider as `status` shows it: its address and whether it is usable, never the key. */
export interface ProviderDescription {
  readonly name: string;
  readonly kind: ProviderKind;
  /** Null for `scripted`, which has no address. */
  readonly baseUrl: string | null;
  readonly keyVariable: string | null;
  /** False if a key is needed, its variable is not set and it is not configured as stored. */
  readonly ready: boolean;
  /** True if no model writes the answers. */
  readonly scripted: boolean;
}

export const describeProvider = (provider: ProviderConfig, env: Environment): ProviderDescription => {
  const scripted = provider.kind === 'scripted';
  const key = keyOf(provider, env);
  return {
    name: provider.name,
    kind: provider.kind,
    baseUrl: scripted ? null : withoutUrlSecrets(baseUrlOf(provider)),
    keyVariable: key.variable,
    ready: key.value !== null || !needsKey(provider) || provider.storedKey,
    scripted,
  };
};

/** Describes the providers that agents are configured with, the default agent's first. */
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
