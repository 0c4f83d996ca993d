import { ModelFailure, type ModelPort } from '@antiphon/agent-domain';
import type { AntiphonConfig, ProviderConfig } from '@antiphon/config';
import { invalid } from '@antiphon/kernel';
import { createAnthropicAdapter } from './anthropic.adapter.js';
import { createOpenAiAdapter } from './openai.adapter.js';
import { baseUrlOf, keyOf, needsKey, type Environment, type ProviderKey } from './provider-settings.js';
import { completeRedacted, needlesOf } from './redact-output.js';
import { loadScenarios } from './scripted/scenario.js';
import { createScriptedAdapter } from './scripted/scripted.adapter.js';
import { createRedactor } from './transport/error-text.js';
import { createConnections, createHttpTransport } from './transport/http-transport.js';
import type { HttpTransport } from './transport/http-transport.js';
import { DEFAULT_PROVIDER_LIMITS } from './transport/provider-call.js';
import type { CallEnvironment, ProviderAdapter, ProviderLimits } from './transport/provider-call.js';

export interface ModelsOptions {
  /** Overrides of timeouts and sizes, for tests. */
  readonly limits?: Partial<ProviderLimits>;
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
}

/** All configured providers behind the agent's port. `close` closes idle connections. */
export interface Models extends ModelPort {
  close(): void;
}

interface AdapterDeps {
  readonly config: AntiphonConfig;
  readonly env: Environment;
  readonly environment: CallEnvironment;
  readonly transport: HttpTransport;
}

const notDispatched = (message: string): ModelFailure =>
  new ModelFailure({ reason: 'provider_error', message, dispatched: false, retryable: false });

/**
 * Creates the adapter of a provider without a usable key: every call fails and names the variable
 * to set.
 */
const createRefusing = (
  provider: ProviderConfig,
  problem: string,
  adapter: ProviderAdapter,
): ProviderAdapter => ({
  ...adapter,
  complete: () => Promise.reject(notDispatched(`provider ${provider.name} has no key: ${problem}`)),
});

const keyProblem = (provider: ProviderConfig, key: ProviderKey): string | null => {
  if (key.variable === null || (key.value === null && !needsKey(provider))) return null;
  if (key.value === null) return `the environment variable ${key.variable} is not set`;
  return /^[\x21-\x7e]+$/.test(key.value)
    ? null
    : `the environment variable ${key.variable} holds what cannot be a key`;
};

const createRemote = (
  provider: ProviderConfig,
  { env, environment, transport }: AdapterDeps,
): ProviderAdapter => {
  const key = keyOf(provider, env);
  const common = { ...environment, baseUrl: baseUrlOf(provider), transport };
  const outputLimit = provider.kind === 'openai' ? 'max_completion_tokens' : 'max_tokens';
  const adapter =
    provider.kind === 'anthropic'
      ? createAnthropicAdapter({ ...common, apiKey: key.value ?? '' })
      : createOpenAiAdapter({ ...common, apiKey: key.value, kind: provider.kind, outputLimit });
  const problem = keyProblem(provider, key);
  return problem === null ? adapter : createRefusing(provider, problem, adapter);
};

const createAdapter = (provider: ProviderConfig, deps: AdapterDeps): ProviderAdapter => {
  if (provider.kind === 'cli')
    throw invalid(
      'PROVIDER.KIND_UNAVAILABLE',
      `provider ${provider.name}: the kind cli is not available yet; use one of anthropic, openai, openai-compatible, openrouter, ollama, scripted`,
    );
  if (provider.kind !== 'scripted') return createRemote(provider, deps);
  const scenarios = loadScenarios(provider.baseUrl, deps.config.source);
  return createScriptedAdapter(deps.environment, scenarios);
};

/** Returns every key that a call may carry, so that all of them are redacted from messages. */
const secretsOf = (config: AntiphonConfig, env: Environment): string[] =>
  config.providers.flatMap((provider) => keyOf(provider, env).value ?? []);

/**
 * Creates the agent's access to all configured providers. Throws an AppError (`invalid`) for a kind
 * that is not available, a missing base_url, or a scenario that cannot be read.
 *
 * @param env holds the variables that the configuration names as keys
 */
export const createModels = (
  config: AntiphonConfig,
  env: Environment,
  options: ModelsOptions = {},
): Models => {
  const limits = { ...DEFAULT_PROVIDER_LIMITS, ...options.limits };
  const secrets = secretsOf(config, env);
  const redaction = { needles: needlesOf(secrets), redact: createRedactor(secrets) };
  const environment: CallEnvironment = {
    limits,
    redact: redaction.redact,
    now: options.now ?? Date.now,
  };
  const transport = createHttpTransport(createConnections(limits.connectMs), environment);
  const deps: AdapterDeps = { config, env, environment, transport };
  const adapters = new Map(config.providers.map((one) => [one.name, createAdapter(one, deps)]));
  const adapterOf = (name: string): ProviderAdapter => {
    const adapter = adapters.get(name);
    if (adapter === undefined) throw notDispatched(`no provider is named ${JSON.stringify(name)}`);
    return adapter;
  };
  return {
    complete: async (request, sink) => {
      const adapter = adapterOf(request.provider);
      return completeRedacted((redacted) => adapter.complete(request, redacted), sink, redaction);
    },
    inputBound: (prompt) => adapterOf(prompt.provider).inputBound(prompt),
    maxOutputTokens: (provider, model) => adapterOf(provider).maxOutputTokens(model),
    kindOf: (provider) => adapterOf(provider).kind,
    close: transport.close,
  };
};
