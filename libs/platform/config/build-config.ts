import { isAbsolute, resolve } from 'node:path';
import type {
  AgentConfig,
  AntiphonConfig,
  BudgetConfig,
  PluginConfig,
  PriceConfig,
  ProviderConfig,
} from './antiphon-config.js';
import type { ConfigFile } from './config.schema.js';
import {
  DEFAULT_FEATURES,
  DEFAULT_HOST,
  DEFAULT_KEY_ENV,
  DEFAULT_MAX_ITERATIONS,
  DEFAULT_MEMORY,
  DEFAULT_MODELS,
  DEFAULT_PLUGIN_MEMORY_MB,
  DEFAULT_PLUGIN_TIMEOUT_MS,
  DEFAULT_PORT,
  DEFAULT_RETENTION,
  defaultAgent,
  defaultProvider,
} from './defaults.js';
import type { Environment } from './defaults.js';
import { DEFAULT_PRICES } from './prices.js';

type Section<K extends keyof ConfigFile> = NonNullable<ConfigFile[K]>;
type Item<K extends 'providers' | 'agents' | 'plugins' | 'prices'> = Section<K>[number];

const pathFrom =
  (folder: string, homeDir: string) =>
  (path: string | undefined): string | null => {
    if (path === undefined) return null;
    if (path === '~' || path.startsWith('~/')) return resolve(homeDir, path.slice(2));
    return isAbsolute(path) ? path : resolve(folder, path);
  };
type ToPath = ReturnType<typeof pathFrom>;

const provider = (item: Item<'providers'>): ProviderConfig => ({
  name: item.name,
  kind: item.kind,
  baseUrl: item.base_url ?? null,
  apiKeyEnv: item.api_key_env ?? DEFAULT_KEY_ENV[item.kind] ?? null,
});

const agent = (item: Item<'agents'>, providers: readonly ProviderConfig[], toPath: ToPath): AgentConfig => {
  const own = providers.find(({ name }) => name === item.provider) ?? providers[0];
  return {
    id: item.id,
    name: item.name ?? item.id,
    role: item.role ?? null,
    provider: own?.name ?? '',
    model: item.model ?? (own === undefined ? '' : (DEFAULT_MODELS[own.kind] ?? '')),
    systemPrompt: item.system_prompt ?? null,
    soulPath: toPath(item.soul_path),
    identityDir: toPath(item.identity_dir),
    tools: item.tools ?? [],
    capabilities: item.capabilities ?? [],
    maxIterations: item.max_iterations ?? DEFAULT_MAX_ITERATIONS,
    position: item.position ?? null,
    fallback: item.fallback ?? null,
  };
};

const plugin = (item: Item<'plugins'>, toPath: ToPath): PluginConfig => ({
  name: item.name,
  path: toPath(item.path) ?? item.path,
  kind: item.kind ?? 'tool',
  capabilities: item.capabilities ?? [],
  timeoutMs: item.timeout_ms ?? DEFAULT_PLUGIN_TIMEOUT_MS,
  memoryMb: item.memory_mb ?? DEFAULT_PLUGIN_MEMORY_MB,
});

const price = (item: Item<'prices'>): PriceConfig => ({
  provider: item.provider,
  model: item.model,
  inputMicroUsdPerMtok: item.input_per_mtok,
  outputMicroUsdPerMtok: item.output_per_mtok,
});

const budgets = (section: Section<'budgets'> | undefined): BudgetConfig => ({
  session: section?.session ?? null,
  daily: section?.daily ?? null,
  monthly: section?.monthly ?? null,
  sessionMicroUsd: section?.session_usd ?? null,
  dailyMicroUsd: section?.daily_usd ?? null,
  monthlyMicroUsd: section?.monthly_usd ?? null,
});

const settings = ({ gateway, memory, features, retention }: ConfigFile) => ({
  gateway: {
    host: gateway?.host ?? DEFAULT_HOST,
    port: gateway?.port ?? DEFAULT_PORT,
    token: gateway?.token ?? null,
  },
  memory: {
    episodicWindow: memory?.episodic_window ?? DEFAULT_MEMORY.episodicWindow,
    contextTokens: memory?.context_tokens ?? DEFAULT_MEMORY.contextTokens,
    semanticEnabled: memory?.semantic_enabled ?? DEFAULT_MEMORY.semanticEnabled,
  },
  features: {
    agentRuntimeV1: features?.agent_runtime_v1 ?? DEFAULT_FEATURES.agentRuntimeV1,
    memoryV1: features?.memory_v1 ?? DEFAULT_FEATURES.memoryV1,
    workersV1: features?.workers_v1 ?? DEFAULT_FEATURES.workersV1,
  },
  retention: {
    eventsDays: retention?.events_days ?? DEFAULT_RETENTION.eventsDays,
    metricsDays: retention?.metrics_days ?? DEFAULT_RETENTION.metricsDays,
  },
});

export interface BuildContext {
  /** Absolute path of the file, null for the built-in defaults. */
  readonly source: string | null;
  /** What relative paths in the file are relative to. */
  readonly folder: string;
  readonly homeDir: string;
  readonly env: Environment;
}

/** A checked file with every default filled in; warnings come later. An empty file gives the built-in defaults. */
export const buildConfig = (
  file: ConfigFile,
  { source, folder, homeDir, env }: BuildContext,
): AntiphonConfig => {
  const toPath = pathFrom(folder, homeDir);
  const fromFile = (file.providers ?? []).map(provider);
  const providers = fromFile.length === 0 ? [defaultProvider(env)] : fromFile;
  const first = providers[0] ?? defaultProvider(env);
  const agents = (file.agents ?? []).map((item) => agent(item, providers, toPath));
  return {
    source,
    ...settings(file),
    providers,
    agents: agents.length === 0 ? [defaultAgent(first, DEFAULT_MODELS[first.kind] ?? '')] : agents,
    plugins: (file.plugins ?? []).map((item) => plugin(item, toPath)),
    bindings: file.bindings ?? [],
    budgets: budgets(file.budgets),
    prices: [...(file.prices ?? []).map(price), ...DEFAULT_PRICES],
    warnings: [],
  };
};
