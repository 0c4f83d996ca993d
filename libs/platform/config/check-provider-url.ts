import type { AntiphonConfig, ProviderConfig } from './antiphon-config.js';
import { chooseProxy, NO_PROXY_SETTING, parseProxy } from './provider-proxy.js';
import type { Environment } from './build-config.js';
import { isLoopbackUrl } from './provider-url.js';
import { PROVIDER_FACTS } from './provider-kinds.js';
import type { ProviderKind } from './provider-kinds.js';

/** Paths of endpoints, which the adapters add to a base address. The longest ones are first. */
const ENDPOINT =
  /\/(?:model\/[^/]+\/converse(?:-stream)?|models\/[^/]+:(?:streamG|g)enerateContent|chat\/completions|responses|messages(?:\/count_tokens)?|completions|embeddings|api\/(?:chat|generate|tags))$/;

export interface UrlProblem {
  readonly message: string;
  readonly example?: string;
}

/** Returns why an address cannot be the base of a provider's paths; null if it can. */
export const baseUrlProblem = (text: string): UrlProblem | null => {
  const url = URL.parse(text);
  if (url === null || !['http:', 'https:'].includes(url.protocol))
    return { message: 'not an http or https URL' };
  if (url.username !== '' || url.password !== '') return { message: 'credentials in the URL' };
  if (url.hash !== '') return { message: 'a part behind #, which is never sent' };
  const path = url.pathname.replace(/(?<!\/)\/+$/, '');
  const [endpoint] = ENDPOINT.exec(path) ?? [];
  if (endpoint === undefined) return null;
  return {
    message: `it ends in ${endpoint}, which is added to it: leave that out`,
    example: `base_url = "${url.origin}${path.slice(0, -endpoint.length)}"`,
  };
};

/** Hosts whose documentation names a base address without a path. */
const WITHOUT_PATH = /(?:^|\.)deepseek\.com$/;

/** Kinds whose adapter completes an address without a path. */
const COMPLETED: readonly ProviderKind[] = ['ollama', 'azure-openai'];

const pathWarning = ({ name, kind, baseUrl }: ProviderConfig): string | null => {
  const url = URL.parse(baseUrl ?? '');
  if (url !== null && kind === 'gemini' && /\/openai\/*$/.test(url.pathname))
    return `provider ${name}: base_url is the address of Gemini in OpenAI's format: use the kind openai-compatible, or leave /openai out`;
  if (url === null || PROVIDER_FACTS[kind].adapter !== 'openai' || COMPLETED.includes(kind)) return null;
  if (url.pathname !== '/' || WITHOUT_PATH.test(url.hostname)) return null;
  return `provider ${name}: base_url has no path, and most servers expect /v1: ${url.origin}/v1`;
};

const queryWarning = ({ name, baseUrl }: ProviderConfig): string | null => {
  const names = [...(URL.parse(baseUrl ?? '')?.searchParams.keys() ?? [])];
  const others = names.filter((one) => one !== 'api-version');
  return others.length === 0
    ? null
    : `provider ${name}: base_url has a query (${others.join(', ')}), which every call sends; a key belongs into api_key_env`;
};

const proxyWarning = (provider: ProviderConfig, env: Environment): string | null => {
  const { name, baseUrl, kind, proxy } = provider;
  const base = baseUrl ?? PROVIDER_FACTS[kind].baseUrl;
  const url = URL.parse(base ?? '');
  if (url === null || PROVIDER_FACTS[kind].adapter === 'scripted') return null;
  if (isLoopbackUrl(base))
    return proxy === undefined || proxy === NO_PROXY_SETTING
      ? null
      : `provider ${name}: proxy has no effect, because base_url is an address of this machine`;
  const choice = chooseProxy(provider, url, env);
  return choice.kind === 'invalid'
    ? `provider ${name}: ${choice.from} is not the URL of an http or https proxy, so that its calls fail`
    : null;
};

type Waits = Partial<Pick<ProviderConfig, 'firstByteMs' | 'betweenBytesMs' | 'attemptMs'>>;

/** Warns about a wait that an attempt has no time for. */
const waitWarnings = (owner: string, { firstByteMs, betweenBytesMs, attemptMs }: Waits): string[] =>
  Object.entries({ first_byte_s: firstByteMs, between_bytes_s: betweenBytesMs }).flatMap(([key, ms]) =>
    ms === undefined || attemptMs === undefined || ms <= attemptMs
      ? []
      : [
          `${owner}: ${key} = ${ms / 1_000} has no effect, because attempt_s = ${attemptMs / 1_000} ends a call`,
        ],
  );

/** Returns true for a value of `proxy` that can be used. */
export const isProxySetting = (text: string): boolean =>
  text === NO_PROXY_SETTING || parseProxy(text) !== null;

/** Returns warnings about the addresses, proxies and limits of providers and agents. */
export const providerWarnings = (
  { providers, agents }: Pick<AntiphonConfig, 'providers' | 'agents'>,
  env: Environment,
): readonly string[] => [
  ...providers.flatMap((provider) =>
    [
      pathWarning(provider),
      queryWarning(provider),
      proxyWarning(provider, env),
      ...waitWarnings(`provider ${provider.name}`, provider),
    ].filter((warning) => warning !== null),
  ),
  ...agents.flatMap((agent) => waitWarnings(`agent ${agent.id}`, agent)),
];
