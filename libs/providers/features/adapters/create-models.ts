import { ModelFailure, type ModelPort, type ModelUsage } from '@antiphon/providers-domain';
import { CALLABLE_KINDS, PROVIDER_FACTS } from '@antiphon/config';
import type { AntiphonConfig, ProviderConfig } from '@antiphon/config';
import type { Cause } from '@antiphon/contracts/causes';
import { DEFAULT_WORKSPACE } from '@antiphon/contracts/log';
import { invalid, isAppError } from '@antiphon/kernel';
import { createRedactor, type Redact } from '@antiphon/observability';
import { createAnthropicAdapter } from './anthropic.adapter.js';
import { createGeminiAdapter } from './gemini.adapter.js';
import { createOpenAiAdapter } from './openai.adapter.js';
import { LearnedParameters } from './learned-parameters.js';
import {
  baseUrlOf,
  keyOf,
  needsKey,
  secretsInUrl,
  type Environment,
  type ProviderKey,
} from './provider-settings.js';
import { answerNeedles, completeRedacted } from './redact-output.js';
import { loadScenarios } from '../scripted/scenario.js';
import { createScriptedAdapter } from '../scripted/scripted.adapter.js';
import { proxySecrets, routeOf } from './provider-route.js';
import { createConnections, describeProxy } from '../transport/connections.js';
import { createHttpTransport } from '../transport/http-transport.js';
import type { HttpTransport } from '../transport/http-transport.js';
import { CallLimiter } from '../limits/call-limiter.js';
import type {
  CallEnvironment,
  Generation,
  ProviderAdapter,
  ProviderLimits,
} from '../transport/provider-call.js';

/** Reads the stored key of a provider for a workspace; null if there is none. */
export type ReadStoredKey = (workspace: string, provider: string) => Promise<string | null>;

/**
 * Reads a stored key for a call. A failure is one of a call that was not sent, without the secret.
 */
const readKeyForCall = async (
  read: ReadStoredKey,
  workspace: string,
  provider: string,
): Promise<string | null> => {
  try {
    return await read(workspace, provider);
  } catch (error) {
    const isTransient = isAppError(error) && error.kind === 'transient';
    const { code, message: text } = isAppError(error) ? error : { code: null, message: '' };
    throw notDispatched({ kind: 'provider_credential', provider, code, text }, isTransient);
  }
};

export interface ModelsOptions {
  /** Overrides of timeouts and sizes, for tests. */
  readonly limits?: Partial<ProviderLimits>;
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
  /** Reads a stored key, which wins over the environment variable. Default: there is none. */
  readonly readStoredKey?: ReadStoredKey;
}

/** All configured providers behind the agent's port. `close` closes idle connections. */
export interface Models extends ModelPort {
  /**
   * Returns the usage of an earlier call as its vendor counted it. Null while the vendor does not
   * know it, and where it tells none. Throws a `ModelFailure`.
   */
  findUsage(generation: Generation & { readonly workspace: string }): Promise<ModelUsage | null>;
  /** Returns the number of calls that wait for a free place. */
  countWaiting(): number;
  close(): void;
}

interface AdapterDeps {
  readonly config: AntiphonConfig;
  readonly env: Environment;
  readonly environment: CallEnvironment;
  readonly longestConnectMs: (provider: ProviderConfig) => number;
  readonly readStoredKey: ReadStoredKey;
}

/** Secrets of a call, as the places that redact them need them. */
interface Redaction {
  readonly needles: readonly string[];
  readonly redact: Redact;
}

/** A configured provider. Its key is read for each call. */
interface Provider {
  readonly adapter: ProviderAdapter;
  readonly close: () => void;
  /** Returns the adapter with the stored key of a workspace, if there is one. */
  withStoredKey(workspace: string): Promise<{ adapter: ProviderAdapter; secret: string | null }>;
}

const notDispatched = (why: Cause, retryable = false): ModelFailure =>
  new ModelFailure({ reason: 'provider_error', why, dispatched: false, retryable });

/**
 * Creates the adapter of a provider without a usable key, proxy or certificate: every call fails
 * and names the setting or variable to correct.
 */
const createRefusing = (problem: Cause, adapter: ProviderAdapter): ProviderAdapter => ({
  ...adapter,
  complete: () => Promise.reject(notDispatched(problem)),
});

const keyProblem = (provider: ProviderConfig, { variable, value }: ProviderKey): Cause | null => {
  if (variable === null || (value === null && !needsKey(provider))) return null;
  if (value !== null && /^[\x21-\x7e]+$/.test(value)) return null;
  const problem = value === null ? 'unset' : 'unusable';
  return { kind: 'provider_key', provider: provider.name, variable, problem };
};

/** Dependencies of the adapters of one provider, which all of its keys share. */
interface RemoteDeps {
  readonly environment: CallEnvironment;
  readonly transport: HttpTransport;
  readonly parameters: LearnedParameters;
  /** Why no call can take the way to the provider. */
  readonly problem: Cause | null;
}

const createRemote = (
  provider: ProviderConfig,
  key: ProviderKey,
  { environment, transport, parameters, problem: routeProblem }: RemoteDeps,
): ProviderAdapter => {
  const common = { ...environment, baseUrl: baseUrlOf(provider), transport, parameters };
  const { adapter: protocol } = PROVIDER_FACTS[provider.kind];
  const apiKey = key.value ?? '';
  const adapter =
    protocol === 'anthropic'
      ? createAnthropicAdapter({ ...common, apiKey, promptCache: provider.promptCache })
      : protocol === 'gemini'
        ? createGeminiAdapter({ ...common, apiKey })
        : createOpenAiAdapter({ ...common, apiKey: key.value, kind: provider.kind });
  const problem = keyProblem(provider, key) ?? routeProblem;
  return problem === null ? adapter : createRefusing(problem, adapter);
};

const createRemoteProvider = (provider: ProviderConfig, deps: AdapterDeps): Provider => {
  const route = routeOf(provider, deps.env);
  const transport = createHttpTransport(
    createConnections({ ...route, connectMs: deps.longestConnectMs(provider) }),
    deps.environment,
    describeProxy(route),
  );
  const problem: Cause | null = route.problem && {
    ...{ kind: 'provider_route', provider: provider.name },
    ...route.problem,
  };
  const parameters = new LearnedParameters(deps.config, provider);
  const remote = { environment: deps.environment, transport, parameters, problem };
  const adapter = createRemote(provider, keyOf(provider, deps.env), remote);
  const withStoredKey = async (workspace: string) => {
    const secret = await readKeyForCall(deps.readStoredKey, workspace, provider.name);
    if (secret === null) return { adapter, secret };
    const { redact } = deps.environment;
    const redactSecret = createRedactor([secret]);
    const environment = { ...deps.environment, redact: (text: string) => redactSecret(redact(text)) };
    const own = { ...remote, environment };
    return { adapter: createRemote(provider, { variable: null, value: secret }, own), secret };
  };
  return { adapter, withStoredKey, close: transport.close };
};

const createProvider = (provider: ProviderConfig, deps: AdapterDeps): Provider => {
  const { adapter: protocol } = PROVIDER_FACTS[provider.kind];
  if (protocol === null)
    throw invalid(
      'PROVIDER.KIND_UNAVAILABLE',
      `provider ${provider.name}: the kind ${provider.kind} is not available yet; use one of ${CALLABLE_KINDS.join(', ')}`,
    );
  if (protocol !== 'scripted') return createRemoteProvider(provider, deps);
  const scenarios = loadScenarios(provider.baseUrl, deps.config.source);
  const adapter = createScriptedAdapter(deps.environment, scenarios);
  const withStoredKey = () => Promise.resolve({ adapter, secret: null });
  return { adapter, withStoredKey, close: () => undefined };
};

/** Returns every key that a call may carry, so that all of them are redacted from messages. */
const secretsOf = ({ providers }: AntiphonConfig, env: Environment): string[] => [
  ...providers.flatMap((provider) => [keyOf(provider, env).value ?? [], secretsInUrl(provider)].flat()),
  ...proxySecrets(providers, env),
];

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
  const limiter = new CallLimiter(config.providers, options.limits);
  const secrets = secretsOf(config, env);
  const redactionOf = (all: readonly string[]): Redaction => ({
    needles: answerNeedles(all),
    redact: createRedactor(all),
  });
  const redaction = redactionOf(secrets);
  const environment: CallEnvironment = {
    limitsOf: (request) => limiter.limitsOf(request),
    redact: redaction.redact,
    now: options.now ?? Date.now,
  };
  const readStoredKey = options.readStoredKey ?? (() => Promise.resolve(null));
  const longestConnectMs = ({ name }: ProviderConfig): number =>
    limiter.longestConnectMs(name, config.agents);
  const deps: AdapterDeps = { config, env, environment, longestConnectMs, readStoredKey };
  const providers = new Map(config.providers.map((one) => [one.name, createProvider(one, deps)]));
  const providerOf = (name: string): Provider => {
    const provider = providers.get(name);
    if (provider === undefined) throw notDispatched({ kind: 'provider_unknown', provider: name });
    return provider;
  };
  const adapterOf = (name: string): ProviderAdapter => providerOf(name).adapter;
  return {
    complete: async (request, sink) => {
      const { workspace = DEFAULT_WORKSPACE } = request;
      const provider = providerOf(request.provider);
      const leave = await limiter.enter({ ...request, workspace });
      try {
        const { adapter, secret } = await provider.withStoredKey(workspace);
        const own = secret === null ? redaction : redactionOf([...secrets, secret]);
        return await completeRedacted((redacted) => adapter.complete(request, redacted), sink, own);
      } finally {
        leave();
      }
    },
    inputBound: (prompt) => adapterOf(prompt.provider).inputBound(prompt),
    limitsOf: (call, agent) => limiter.driverLimitsOf(call, agent),
    findUsage: async ({ workspace, ...generation }) => {
      const { adapter } = await providerOf(generation.provider).withStoredKey(workspace);
      return (await adapter.findUsage?.(generation)) ?? null;
    },
    countWaiting: () => limiter.countWaiting(),
    kindOf: (provider) => adapterOf(provider).kind,
    close: () => {
      for (const provider of providers.values()) provider.close();
    },
  };
};
