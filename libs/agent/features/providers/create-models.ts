import { ModelFailure, type ModelPort } from '@antiphon/agent-domain';
import type { AntiphonConfig, ProviderConfig } from '@antiphon/config';
import { invalid } from '@antiphon/kernel';
import { createAnthropicAdapter } from './anthropic/anthropic.adapter.js';
import { createOpenAiAdapter } from './openai/openai.adapter.js';
import { maxOutputTokensOf } from './output-limits.js';
import type { ProviderAdapter } from './provider-adapter.js';
import { baseUrlOf, keyOf, needsKey, type Environment, type ProviderKey } from './provider-settings.js';
import { loadScenarios } from './scripted/load-scenarios.js';
import { createScriptedAdapter } from './scripted/scripted.adapter.js';
import { createHttpFetch, openConnections, type ProviderFetch } from './transport/http-fetch.js';
import { DEFAULT_PROVIDER_LIMITS, type ProviderLimits } from './transport/limits.js';
import { createRedactor } from './transport/redact.js';
import type { CallEnvironment } from './transport/run-call.js';

export interface ModelsOptions {
  /** Overrides of the clocks and sizes, for tests. */
  readonly limits?: Partial<ProviderLimits>;
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
}

/** All configured providers behind the agent's port. `close` lets kept connections go. */
export interface Models extends ModelPort {
  close(): void;
}

interface Tools {
  readonly config: AntiphonConfig;
  readonly env: Environment;
  readonly environment: CallEnvironment;
  readonly fetch: ProviderFetch;
}

const notDispatched = (message: string): ModelFailure =>
  new ModelFailure({ reason: 'provider_error', message, dispatched: false, retryable: false });

/** Takes the place of a provider that has no usable key: the others work, and a call to it says what to do. */
const refusing = (provider: ProviderConfig, problem: string, adapter: ProviderAdapter): ProviderAdapter => ({
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

const createRemote = (provider: ProviderConfig, { env, environment, fetch }: Tools): ProviderAdapter => {
  const key = keyOf(provider, env);
  const common = { ...environment, baseUrl: baseUrlOf(provider), fetch };
  const outputLimit = provider.kind === 'openai' ? 'max_completion_tokens' : 'max_tokens';
  const adapter =
    provider.kind === 'anthropic'
      ? createAnthropicAdapter({ ...common, apiKey: key.value ?? '' }, maxOutputTokensOf)
      : createOpenAiAdapter(
          { ...common, apiKey: key.value, kind: provider.kind, outputLimit },
          maxOutputTokensOf,
        );
  const problem = keyProblem(provider, key);
  return problem === null ? adapter : refusing(provider, problem, adapter);
};

const createAdapter = (provider: ProviderConfig, tools: Tools): ProviderAdapter => {
  if (provider.kind === 'cli')
    throw invalid(
      'PROVIDER.KIND_UNAVAILABLE',
      `provider ${provider.name}: the kind cli is not available yet; use one of anthropic, openai, openai-compatible, openrouter, ollama, scripted`,
    );
  if (provider.kind !== 'scripted') return createRemote(provider, tools);
  const scenarios = loadScenarios(provider.baseUrl, tools.config.source);
  return createScriptedAdapter(tools.environment, scenarios, maxOutputTokensOf);
};

/** Every key that a call may carry, so that no message can bring any of them back. */
const secretsOf = (config: AntiphonConfig, env: Environment): string[] =>
  config.providers.flatMap((provider) => keyOf(provider, env).value ?? []);

/**
 * The agent's door to all configured providers. Throws an AppError (`invalid`) for a provider that cannot be
 * made: a kind that is not available, a missing base_url, a scenario that cannot be read.
 *
 * @param env where the variables are read that the configuration names as keys
 */
export const createModels = (
  config: AntiphonConfig,
  env: Environment,
  options: ModelsOptions = {},
): Models => {
  const connections = openConnections();
  const environment: CallEnvironment = {
    limits: { ...DEFAULT_PROVIDER_LIMITS, ...options.limits },
    redact: createRedactor(secretsOf(config, env)),
    now: options.now ?? Date.now,
  };
  const tools: Tools = { config, env, environment, fetch: createHttpFetch(connections) };
  const adapters = new Map(config.providers.map((one) => [one.name, createAdapter(one, tools)]));
  const adapterOf = (name: string): ProviderAdapter => {
    const adapter = adapters.get(name);
    if (adapter === undefined) throw notDispatched(`no provider is named ${JSON.stringify(name)}`);
    return adapter;
  };
  return {
    complete: async (request, sink) => adapterOf(request.provider).complete(request, sink),
    inputBound: (prompt) => adapterOf(prompt.provider).inputBound(prompt),
    maxOutputTokens: (provider, model) => adapterOf(provider).maxOutputTokens(model),
    kindOf: (provider) => adapterOf(provider).kind,
    close: connections.close,
  };
};
