import type { ModelInputs, ModelPort, ModelUsage } from '@antiphon/providers-domain';
import { findInputs } from '@antiphon/config';
import type { AntiphonConfig, ProviderConfig } from '@antiphon/config';
import type { ProviderModel } from '@antiphon/contracts/agent';
import { DEFAULT_WORKSPACE } from '@antiphon/contracts/log';
import { createRedactor, type Redact } from '@antiphon/observability';
import { createProvider, NO_KEY } from './create-provider.js';
import type { AdapterDeps, Provider, ProviderLook, ReadStoredKey } from './create-provider.js';
import { keyOf, secretParts, secretsInUrl, type Environment } from './provider-settings.js';
import { ProviderTable } from './provider-table.js';
import type { RuntimeProviders } from './provider-table.js';
import { answerNeedles, completeRedacted, redactFailure } from './redact-output.js';
import { proxySecrets } from './provider-route.js';
import { CallLimiter } from '../limits/call-limiter.js';
import type { CallEnvironment, Generation, ProviderLimits } from '../transport/provider-call.js';

export type { ProviderLook } from './create-provider.js';

export interface ModelsOptions {
  /** Overrides of timeouts and sizes, for tests. */
  readonly limits?: Partial<ProviderLimits>;
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
  /** Reads a stored key, which wins over the environment variable. Default: there is none. */
  readonly readStoredKey?: ReadStoredKey;
  /** Default: only configured providers exist. */
  readonly connected?: RuntimeProviders;
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
  /** Returns the models that a provider lists. Throws a `ModelFailure`. */
  listModels(look: ProviderLook): Promise<ProviderModel[]>;
  close(): void;
}

const inputsOf = (
  { provider: name, model }: { readonly provider: string; readonly model: string },
  workspace: string,
  config: AntiphonConfig,
  connected: RuntimeProviders | undefined,
): ModelInputs => {
  const configured = config.providers.find((one) => one.name === name);
  return findInputs(config, configured ?? connected?.find(workspace, name) ?? null, model);
};

/** Secrets of a call, as the places that redact them need them. */
interface Redaction {
  readonly needles: readonly string[];
  readonly redact: Redact;
}

/** Variables of a program that hold a secret, by their names. */
const SECRET_NAME = /KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL/i;

const secretsInVariables = ({ passEnv = [] }: ProviderConfig, env: Environment): string[] =>
  passEnv.flatMap((name) => (SECRET_NAME.test(name) ? (env[name] ?? []) : []));

/** Returns every key that a call may carry, so that all of them are redacted from messages. */
const secretsOf = ({ providers }: AntiphonConfig, env: Environment): string[] => [
  ...providers.flatMap((provider) => [
    ...secretParts(provider, keyOf(provider, env).value),
    ...secretsInUrl(provider),
    ...secretsInVariables(provider, env),
  ]),
  ...proxySecrets(providers, env),
];

const findUsage = async (
  { workspace, ...generation }: Parameters<Models['findUsage']>[0],
  providers: ProviderTable,
): Promise<ModelUsage | null> => {
  const provider = await providers.load(workspace, generation.provider);
  const { adapter } = await provider.withStoredKey(workspace);
  return (await adapter.findUsage?.(generation)) ?? null;
};

interface ListDeps {
  readonly config: Pick<AntiphonConfig, 'providers'>;
  readonly providers: ProviderTable;
  readonly createConnected: (provider: ProviderConfig) => Provider;
  readonly secrets: readonly string[];
}

/** Asks a provider for its models. One that is not stored is created for this look. */
const listModels = async (
  look: ProviderLook,
  { config, providers, createConnected, secrets }: ListDeps,
): Promise<ProviderModel[]> => {
  const isConfigured = config.providers.includes(look.provider);
  const provider = isConfigured
    ? await providers.load(look.workspace, look.provider.name)
    : createConnected(look.provider);
  const redact = createRedactor([...secrets, ...secretParts(look.provider, look.secret ?? null)]);
  try {
    const models = (await provider.look?.(look)) ?? [];
    // A server may send the key back.
    return models.filter(({ id }) => redact(id) === id);
  } catch (error) {
    throw redactFailure(error, redact);
  } finally {
    if (!isConfigured) provider.close();
  }
};

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
  const deps: AdapterDeps = {
    ...{ config, env, environment, longestConnectMs, readStoredKey },
    keyOf: (provider) => keyOf(provider, env),
  };
  const createConnected = (provider: ProviderConfig): Provider =>
    createProvider(provider, {
      ...deps,
      environment: { ...environment, limitsOf: (request) => limiter.limitsOf(request, provider) },
      keyOf: () => NO_KEY,
    });
  const configured = new Map(config.providers.map((one) => [one.name, createProvider(one, deps)]));
  const providers = new ProviderTable(configured, createConnected, options.connected);
  return {
    complete: async (request, sink) => {
      const { workspace = DEFAULT_WORKSPACE } = request;
      const provider = await providers.load(workspace, request.provider);
      const leave = await limiter.enter({ ...request, workspace });
      try {
        const { adapter, secret } = await provider.withStoredKey(workspace);
        const parts = secretParts(adapter, secret);
        const own = secret === null ? redaction : redactionOf([...secrets, ...parts]);
        return await completeRedacted((redacted) => adapter.complete(request, redacted), sink, own);
      } finally {
        leave();
      }
    },
    open: (provider, workspace) => providers.open(workspace, provider),
    knows: (provider, workspace) => providers.knows(workspace, provider),
    inputBound: (prompt, workspace) => providers.get(workspace, prompt.provider).adapter.inputBound(prompt),
    inputsOf: (call, workspace) => inputsOf(call, workspace, config, options.connected),
    limitsOf: (call, agent) => limiter.driverLimitsOf(call, agent),
    findUsage: (generation) => findUsage(generation, providers),
    countWaiting: () => limiter.countWaiting(),
    kindOf: (provider, workspace) => providers.get(workspace, provider).adapter.kind,
    connectedKindOf: (provider, workspace) =>
      providers.isConfigured(provider) ? null : (options.connected?.find(workspace, provider)?.kind ?? null),
    listModels: (look) => listModels(look, { config, providers, createConnected, secrets }),
    close: () => providers.close(),
  };
};
