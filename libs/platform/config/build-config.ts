import { isAbsolute, resolve } from 'node:path';
import { Agent } from './agent.schema.js';
import { maxBodyBytesOf } from './channel.schema.js';
import type { AgentConfig, AntiphonConfig, ResolvedFile } from './antiphon-config.js';
import { camelKeys } from './camel-keys.js';
import type { ConfigFile } from './config.schema.js';
import { DEFAULT_PRICES } from './prices.js';
import { PROVIDER_FACTS, PROVIDER_KINDS } from './provider-kinds.js';
import { ALL_WORKSPACES } from './workspace-config.js';

export const DEFAULT_AGENT_ID = 'main';
const DEFAULT_TOOLS = ['echo', 'calculator', 'ls', 'read', 'search'];

/** Environment variables in the form of `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Returns true if a variable has a value that is not blank. */
export const isSet = (env: Environment, name: string): boolean => (env[name] ?? '').trim() !== '';

/** Variable with the default provider, for services that do not have its key. */
const DEFAULT_PROVIDER_VARIABLE = 'ANTIPHON_DEFAULT_PROVIDER';

type Provider = ConfigFile['providers'][number];

/**
 * Returns the provider of a start without `[[providers]]`: the one that the supervisor names, the
 * first whose key is in the environment, else `scripted`.
 */
export const defaultProvider = (env: Environment): Provider => {
  const keyed = PROVIDER_KINDS.filter((kind) => {
    const { keyVariable, baseUrl } = PROVIDER_FACTS[kind];
    return keyVariable !== null && baseUrl !== null;
  });
  const kind =
    keyed.find((one) => one === env[DEFAULT_PROVIDER_VARIABLE]) ??
    keyed.find((one) => isSet(env, PROVIDER_FACTS[one].keyVariable ?? '')) ??
    'scripted';
  const { keyVariable } = PROVIDER_FACTS[kind];
  return {
    name: kind,
    kind,
    base_url: null,
    api_key_env: keyVariable,
    stored_key: false,
    prompt_cache: true,
  };
};

const withKeyVariable = (item: Provider): Provider => ({
  ...item,
  api_key_env: item.api_key_env ?? PROVIDER_FACTS[item.kind].keyVariable,
});

/** Returns the agent of a start without `[[agents]]`. */
const defaultAgent = () =>
  Agent.parse({ id: DEFAULT_AGENT_ID, workspace: ALL_WORKSPACES, name: 'Main', tools: DEFAULT_TOOLS });

const resolveAgents = (file: ConfigFile, providers: readonly Provider[]): ResolvedFile['agents'] => {
  const agents = file.agents.length === 0 ? [defaultAgent()] : file.agents;
  return agents.map((agent) => {
    const provider = providers.find(({ name }) => name === agent.provider) ?? providers[0];
    const { kind = 'scripted', name: providerName = '' } = provider ?? {};
    const model = agent.model ?? PROVIDER_FACTS[kind].defaultModel ?? '';
    return { ...agent, name: agent.name ?? agent.id, provider: providerName, model };
  });
};

/** A limit that a workspace does not set is the general one. */
const resolveBudgets = ({ workspaces, ...general }: ConfigFile['budgets']): ConfigFile['budgets'] => {
  const own = workspaces.map((limits) => {
    const set = Object.entries(limits).filter(([, limit]) => limit !== null);
    return { ...general, ...(Object.fromEntries(set) as typeof limits) };
  });
  return { ...general, workspaces: own };
};

/** Fills in the defaults that depend on other keys or on the environment. */
export const resolveFile = (file: ConfigFile, env: Environment): ResolvedFile => {
  const providers =
    file.providers.length === 0 ? [defaultProvider(env)] : file.providers.map(withKeyVariable);
  return {
    ...file,
    providers,
    agents: resolveAgents(file, providers),
    bindings: file.bindings.map((binding) => {
      const workspace = binding.workspace ?? file.agents.find(({ id }) => id === binding.agent)?.workspace;
      return { ...binding, ...(workspace === undefined ? {} : { workspace }) };
    }),
    channels: file.channels.map((channel) => ({
      ...channel,
      plugin: channel.plugin ?? channel.name,
      max_body_bytes: maxBodyBytesOf(channel),
    })),
    budgets: resolveBudgets(file.budgets),
    prices: [...file.prices, ...DEFAULT_PRICES],
  };
};

const pathFrom =
  (folder: string, homeDir: string) =>
  (path: string | null): string | null => {
    if (path === null) return null;
    if (path === '~' || path.startsWith('~/')) return resolve(homeDir, path.slice(2));
    return isAbsolute(path) ? path : resolve(folder, path);
  };

export interface BuildContext {
  /** Absolute path of the file, null for the built-in defaults. */
  readonly source: string | null;
  /** Folder that relative paths in the file start from. */
  readonly folder: string;
  readonly homeDir: string;
}

/** Converts a resolved file to the configuration. Warnings and settings are added later. */
export const buildConfig = (
  file: ResolvedFile,
  { source, folder, homeDir }: BuildContext,
): AntiphonConfig => {
  const toPath = pathFrom(folder, homeDir);
  const { agents, plugins, providers, ...settings } = camelKeys(file);
  return {
    source,
    ...settings,
    agents: agents.map((agent): AgentConfig => ({
      ...agent,
      soulPath: toPath(agent.soulPath),
      identityDir: toPath(agent.identityDir),
      approvals: agent.approvals.map(({ escalateAfterMs: after, ...rule }) => ({
        ...rule,
        escalateAfterMs: after === 0 || after >= rule.expiresAfterMs ? null : after,
      })),
    })),
    providers: providers.map((provider) => {
      const caFile = toPath(provider.caFile ?? null);
      const folder = toPath(provider.folder ?? null);
      return {
        ...provider,
        ...(caFile === null ? {} : { caFile }),
        ...(folder === null ? {} : { folder }),
      };
    }),
    plugins: plugins.map((plugin) => ({ ...plugin, path: toPath(plugin.path) })),
    warnings: [],
    settings: [],
  };
};
