import { ModelFailure } from '@antiphon/providers-domain';
import { CALLABLE_KINDS, PROVIDER_FACTS, keyVariablesOf } from '@antiphon/config';
import type { AntiphonConfig, ProviderConfig } from '@antiphon/config';
import type { ProviderModel } from '@antiphon/contracts/agent';
import type { Cause } from '@antiphon/contracts/causes';
import { invalid, isAppError } from '@antiphon/kernel';
import { createRedactor } from '@antiphon/observability';
import { createAnthropicAdapter } from './anthropic.adapter.js';
import { createBedrockAdapter } from './bedrock.adapter.js';
import { isAccessKey, regionOf } from './bedrock-signing.js';
import { createGeminiAdapter } from './gemini.adapter.js';
import { LearnedParameters } from './learned-parameters.js';
import { createOpenAiAdapter } from './openai.adapter.js';
import { routeOf } from './provider-route.js';
import { baseUrlOf, needsKey, secretParts } from './provider-settings.js';
import type { Environment, ProviderKey } from './provider-settings.js';
import { lookAt } from './list-models.js';
import { createCliAdapter } from '../cli/cli.adapter.js';
import { loadScenarios } from '../scripted/scenario.js';
import { createScriptedAdapter } from '../scripted/scripted.adapter.js';
import { createConnections, describeProxy } from '../transport/connections.js';
import { createHttpTransport } from '../transport/http-transport.js';
import type { HttpTransport } from '../transport/http-transport.js';
import type { CallEnvironment, ProviderAdapter } from '../transport/provider-call.js';

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

/** A look at a provider, which may not be stored yet. */
export interface ProviderLook {
  readonly workspace: string;
  readonly provider: ProviderConfig;
  /** Null for no key; absent for the key of the provider. */
  readonly secret?: string | null;
  /** Model to call if the provider lists none. */
  readonly model?: string | undefined;
}

/** Dependencies of a provider. */
export interface AdapterDeps {
  readonly config: AntiphonConfig;
  readonly env: Environment;
  readonly environment: CallEnvironment;
  readonly longestConnectMs: (provider: ProviderConfig) => number;
  readonly readStoredKey: ReadStoredKey;
  /** Key of a provider in the environment. */
  readonly keyOf: (provider: ProviderConfig) => ProviderKey;
}

/** A provider. Its key is read for each call. */
export interface Provider {
  readonly adapter: ProviderAdapter;
  readonly close: () => void;
  /** Returns the adapter with the stored key of a workspace, if there is one. */
  withStoredKey(workspace: string): Promise<{ adapter: ProviderAdapter; secret: string | null }>;
  /** Asks it for its models. Null without a network. */
  readonly look: ((look: ProviderLook) => Promise<ProviderModel[]>) | null;
}

/** Returns the failure of a call that was not sent. */
export const notDispatched = (why: Cause, retryable = false): ModelFailure =>
  new ModelFailure({ reason: 'provider_error', why, dispatched: false, retryable });

/**
 * Creates the adapter of a provider without a usable key, proxy or certificate: every call fails
 * and names the setting or variable to correct.
 */
const createRefusing = (problem: Cause, adapter: ProviderAdapter): ProviderAdapter => ({
  ...adapter,
  complete: () => Promise.reject(notDispatched(problem)),
});

/** Key of a provider whose key is never in the environment. */
export const NO_KEY: ProviderKey = { variable: null, value: null };

const keyProblem = (provider: ProviderConfig, { variable, value }: ProviderKey): Cause | null => {
  if (variable === null || (value === null && !needsKey(provider))) return null;
  const [, secret] = keyVariablesOf(provider);
  const isWhole = secret === undefined || value === null || isAccessKey(value);
  if (isWhole && value !== null && /^[\x21-\x7e]+$/.test(value)) return null;
  const problem = value === null || !isWhole ? 'unset' : 'unusable';
  const missing = isWhole ? variable : secret;
  return { kind: 'provider_key', provider: provider.name, variable: missing, problem };
};

const noRegion = ({ name: provider }: ProviderConfig): Cause => ({
  ...{ kind: 'provider_route', provider, problem: 'no_region', setting: 'base_url', detail: '' },
});

/** Dependencies of the adapters of one provider, which all of its keys share. */
interface RemoteDeps {
  readonly environment: CallEnvironment;
  readonly transport: HttpTransport;
  readonly parameters: LearnedParameters;
  /** Region of the environment, for a provider whose address names none. */
  readonly region: string | undefined;
  /** Why no call can take the way to the provider. */
  readonly problem: Cause | null;
}

const createRemote = (provider: ProviderConfig, key: ProviderKey, remote: RemoteDeps): ProviderAdapter => {
  const { environment, transport, parameters, problem: routeProblem } = remote;
  const common = { ...environment, baseUrl: baseUrlOf(provider), transport, parameters };
  const { adapter: protocol } = PROVIDER_FACTS[provider.kind];
  const apiKey = key.value ?? '';
  const region = regionOf(common.baseUrl, remote.region);
  const adapter =
    protocol === 'anthropic'
      ? createAnthropicAdapter({ ...common, apiKey, promptCache: provider.promptCache })
      : protocol === 'gemini'
        ? createGeminiAdapter({ ...common, apiKey })
        : protocol === 'bedrock'
          ? createBedrockAdapter({ ...common, apiKey, region, promptCache: provider.promptCache })
          : createOpenAiAdapter({ ...common, apiKey: key.value, kind: provider.kind });
  const hasRegion = protocol !== 'bedrock' || region !== '' || !isAccessKey(apiKey);
  const problem = keyProblem(provider, key) ?? routeProblem ?? (hasRegion ? null : noRegion(provider));
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
  const region = deps.env['AWS_REGION'];
  const remote = { environment: deps.environment, transport, parameters, region, problem };
  const key = deps.keyOf(provider);
  const adapter = createRemote(provider, key, remote);
  const withKey = (secret: string): ProviderAdapter => {
    const { redact } = deps.environment;
    const redactSecret = createRedactor(secretParts(provider, secret));
    const environment = { ...deps.environment, redact: (text: string) => redactSecret(redact(text)) };
    return createRemote(provider, { variable: null, value: secret }, { ...remote, environment });
  };
  const withStoredKey = async (workspace: string) => {
    const secret = await readKeyForCall(deps.readStoredKey, workspace, provider.name);
    return { adapter: secret === null ? adapter : withKey(secret), secret };
  };
  const look = async ({ secret, model }: ProviderLook): Promise<ProviderModel[]> => {
    const apiKey = secret === undefined ? key.value : secret;
    if (problem !== null) throw notDispatched(problem);
    const called = apiKey === null ? createRemote(provider, NO_KEY, remote) : withKey(apiKey);
    return lookAt({ provider, apiKey, transport, called, model, config: deps.config });
  };
  return { adapter, withStoredKey, look, close: transport.close };
};

const createCliProvider = (provider: ProviderConfig, deps: AdapterDeps): Provider => {
  const adapter = createCliAdapter({ ...deps.environment, provider, env: deps.env });
  const withStoredKey = () => Promise.resolve({ adapter, secret: null });
  return { adapter, withStoredKey, look: null, close: () => undefined };
};

/** Creates a provider. Throws for a kind without an adapter, and for an address that is none. */
export const createProvider = (provider: ProviderConfig, deps: AdapterDeps): Provider => {
  const { adapter: protocol } = PROVIDER_FACTS[provider.kind];
  if (protocol === null || (protocol === 'cli' && provider.program === undefined))
    throw invalid(
      'PROVIDER.KIND_UNAVAILABLE',
      `provider ${provider.name}: the kind ${provider.kind} is not available yet; use one of ${CALLABLE_KINDS.join(', ')}`,
    );
  if (protocol === 'cli') return createCliProvider(provider, deps);
  if (protocol !== 'scripted') return createRemoteProvider(provider, deps);
  const scenarios = loadScenarios(provider.baseUrl, deps.config.source);
  const adapter = createScriptedAdapter(deps.environment, scenarios);
  const withStoredKey = () => Promise.resolve({ adapter, secret: null });
  return { adapter, withStoredKey, look: null, close: () => undefined };
};
