import { isAbsolute, resolve } from 'node:path';
import type {
  AgentConfig,
  AntiphonConfig,
  ApprovalRule,
  BindingConfig,
  BudgetConfig,
  BudgetLimitConfig,
  PluginConfig,
  PriceConfig,
  ProviderConfig,
  ProviderKind,
  ToolLimit,
} from './antiphon-config.js';
import type { ConfigFile } from './config.schema.js';
import { DEFAULT_PRICES } from './prices.js';

export const DEFAULT_HOST = '127.0.0.1';
export const DEFAULT_PORT = 7400;
/** Minimum length of a configured token: a shorter one can be guessed. */
export const MIN_TOKEN_LENGTH = 32;
export const TOKEN_RULE = `the secret that clients send to connect: at least ${MIN_TOKEN_LENGTH} characters (openssl rand -hex 32)`;
/** Rate limits of one API key. The bursts are ten seconds long. */
export const DEFAULT_REQUESTS_PER_S = 100;
export const DEFAULT_FRAMES_PER_S = 200;
export const DEFAULT_BYTES_PER_S = 4 * 1024 * 1024;
/** Sign-ins of one client address, and of one API key, in five minutes. */
export const DEFAULT_SIGN_INS = 20;
export const DEFAULT_AGENT_ID = 'main';
/** Workspace of entries that name none. */
export const DEFAULT_WORKSPACE = 'default';

/** Conventional key variables, in the order in which a start without a file checks them. */
export const DEFAULT_KEY_ENV: Partial<Record<ProviderKind, string>> = {
  anthropic: 'ANTHROPIC_API_KEY',
  openai: 'OPENAI_API_KEY',
  openrouter: 'OPENROUTER_API_KEY',
};

/** Default model by provider kind. A kind without one needs `model`. */
export const DEFAULT_MODELS: Partial<Record<ProviderKind, string>> = {
  anthropic: 'claude-sonnet-4-5',
  openai: 'gpt-4o',
  openrouter: 'anthropic/claude-sonnet-4.5',
  scripted: 'scripted',
};

export const DEFAULT_TOOLS: readonly string[] = ['echo', 'calculator'];
/** Plug-ins that are registered without configuration. */
export const BUNDLED_PLUGINS: readonly string[] = ['echo', 'calculator', 'http-get'];

export const DEFAULT_MAX_ITERATIONS = 10;
export const DEFAULT_PLUGIN_TIMEOUT_MS = 5_000;
export const DEFAULT_PLUGIN_MEMORY_MB = 64;
export const DEFAULT_EPISODIC_WINDOW = 5;
export const DEFAULT_CONTEXT_TOKENS = 4_000;
export const DEFAULT_RETENTION_DAYS = 30;
/** Days for which a comparison of projections looks at changes of agents' states. */
export const COMPARED_DAYS = 30;
export const DEFAULT_STATE_CHANGES_DAYS = 31;
/** Maximum number of hops of a chain of requests from agent to agent. */
export const DEFAULT_MAX_HOPS = 8;
export const DEFAULT_HEADER_TIMEOUT_S = 10;
export const DEFAULT_BODY_TIMEOUT_S = 30;
/** Defaults of an approval: a day until it expires, an hour until it escalates. */
export const DEFAULT_APPROVAL_EXPIRES_S = 86_400;
export const DEFAULT_APPROVAL_ESCALATES_S = 3_600;

/** Environment variables in the form of `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Returns true if a variable has a value that is not blank. */
export const isSet = (env: Environment, name: string): boolean => (env[name] ?? '').trim() !== '';

/** Variable with the default provider, for services that do not have its key. */
const DEFAULT_PROVIDER_VARIABLE = 'ANTIPHON_DEFAULT_PROVIDER';

/**
 * Returns the provider of a start without `[[providers]]`: the one that the supervisor names, the
 * first whose key is in the environment, else `scripted`.
 */
export const defaultProvider = (env: Environment): ProviderConfig => {
  const named = Object.entries(DEFAULT_KEY_ENV).find(([kind]) => kind === env[DEFAULT_PROVIDER_VARIABLE]);
  if (named !== undefined) {
    const [kind, apiKeyEnv] = named as [ProviderKind, string];
    return { name: kind, kind, baseUrl: null, apiKeyEnv };
  }
  for (const [kind, apiKeyEnv] of Object.entries(DEFAULT_KEY_ENV) as [ProviderKind, string][])
    if (isSet(env, apiKeyEnv)) return { name: kind, kind, baseUrl: null, apiKeyEnv };
  return { name: 'scripted', kind: 'scripted', baseUrl: null, apiKeyEnv: null };
};

/** Returns the agent of a start without `[[agents]]`. */
export const defaultAgent = (provider: ProviderConfig, model: string): AgentConfig => ({
  id: DEFAULT_AGENT_ID,
  name: 'Main',
  role: null,
  provider: provider.name,
  model,
  systemPrompt: null,
  soulPath: null,
  identityDir: null,
  tools: DEFAULT_TOOLS,
  capabilities: [],
  maxIterations: DEFAULT_MAX_ITERATIONS,
  position: null,
  fallback: null,
  approvals: [],
  toolLimits: [],
  budget: null,
});

type Item<K extends 'providers' | 'agents' | 'plugins' | 'prices'> = ConfigFile[K][number];

const pathFrom =
  (folder: string, homeDir: string) =>
  (path: string | null): string | null => {
    if (path === null) return null;
    if (path === '~' || path.startsWith('~/')) return resolve(homeDir, path.slice(2));
    return isAbsolute(path) ? path : resolve(folder, path);
  };
type ToPath = ReturnType<typeof pathFrom>;

const provider = (item: Item<'providers'>): ProviderConfig => ({
  name: item.name,
  kind: item.kind,
  baseUrl: item.base_url,
  apiKeyEnv: item.api_key_env ?? DEFAULT_KEY_ENV[item.kind] ?? null,
  storedKey: item.stored_key,
});

const defaultModel = ({ kind }: ProviderConfig): string => DEFAULT_MODELS[kind] ?? '';

const approval = (item: Item<'agents'>['approvals'][number]): ApprovalRule => {
  const { escalate_after_s: escalates, expires_after_s: expires } = item;
  return {
    tool: item.tool,
    ask: item.ask,
    expiresAfterMs: expires * 1_000,
    escalateAfterMs: escalates === 0 || escalates >= expires ? null : escalates * 1_000,
    escalateTo: item.escalate_to,
    answerBy: item.answer_by,
  };
};

const toolLimit = (item: Item<'agents'>['tool_limits'][number]): ToolLimit => ({
  tool: item.tool,
  timeoutMs: item.timeout_ms,
  maxAttempts: item.max_attempts,
  maxBackoffMs: item.max_backoff_ms,
});

const agent = (item: Item<'agents'>, provider: ProviderConfig, toPath: ToPath): AgentConfig => ({
  id: item.id,
  workspace: item.workspace,
  name: item.name ?? item.id,
  role: item.role,
  provider: provider.name,
  model: item.model ?? defaultModel(provider),
  systemPrompt: item.system_prompt,
  soulPath: toPath(item.soul_path),
  identityDir: toPath(item.identity_dir),
  tools: item.tools,
  capabilities: item.capabilities,
  maxIterations: item.max_iterations,
  position: item.position,
  ...(item.read_roots ? { readRoots: item.read_roots } : {}),
  ...(item.contacts ? { contacts: item.contacts } : {}),
  ...(item.models ? { models: item.models } : {}),
  ...(item.read_chats ? { readChats: true } : {}),
  ...(item.write_roots ? { writeRoots: item.write_roots } : {}),
  fallback: item.fallback,
  approvals: item.approvals.map(approval),
  toolLimits: item.tool_limits.map(toolLimit),
  budget: item.budget && { tokens: item.budget.tokens, microUsd: item.budget.usd },
});

const plugin = (item: Item<'plugins'>, toPath: ToPath): PluginConfig => ({
  name: item.name,
  workspace: item.workspace,
  path: toPath(item.path),
  kind: item.kind,
  capabilities: item.capabilities,
  timeoutMs: item.timeout_ms,
  memoryMb: item.memory_mb,
  retry: { maxAttempts: item.retry.max_attempts, maxBackoffMs: item.retry.max_backoff_ms },
});

const binding = (item: ConfigFile['bindings'][number], agents: readonly AgentConfig[]): BindingConfig => {
  const { workspace = agents.find(({ id }) => id === item.agent)?.workspace, ...place } = item;
  return { ...place, ...(workspace === undefined ? {} : { workspace }) };
};

const price = (item: Item<'prices'>): PriceConfig => ({
  provider: item.provider,
  model: item.model,
  inputMicroUsdPerMtok: item.input_per_mtok,
  outputMicroUsdPerMtok: item.output_per_mtok,
});

const limitsFrom = (table: Omit<ConfigFile['budgets'], 'workspaces'>): BudgetLimitConfig => ({
  session: table.session,
  daily: table.daily,
  monthly: table.monthly,
  sessionMicroUsd: table.session_usd,
  dailyMicroUsd: table.daily_usd,
  monthlyMicroUsd: table.monthly_usd,
});

const budgetsFrom = ({ workspaces, ...table }: ConfigFile['budgets']): BudgetConfig => {
  const general = limitsFrom(table);
  const own = workspaces.map(({ workspace, ...limits }) => {
    const set = Object.entries(limitsFrom(limits)).filter(([, limit]) => limit !== null);
    return { ...general, ...Object.fromEntries(set), workspace };
  });
  return { ...general, workspaces: own };
};

const settings = ({ gateway, budgets, memory, features, files, retention, messages }: ConfigFile) => ({
  gateway: {
    host: gateway.host,
    port: gateway.port,
    token: gateway.token,
    trustedProxies: gateway.trusted_proxies,
    allowedOrigins: gateway.allowed_origins,
    loopbackWithoutToken: gateway.loopback_without_token,
    headerTimeoutMs: gateway.header_timeout_s * 1_000,
    bodyTimeoutMs: gateway.body_timeout_s * 1_000,
    limits: {
      requestsPerSecond: gateway.limits.requests_per_second,
      framesPerSecond: gateway.limits.frames_per_second,
      bytesPerSecond: gateway.limits.bytes_per_second,
      signIns: gateway.limits.sign_ins,
    },
  },
  budgets: budgetsFrom(budgets),
  memory: {
    episodicWindow: memory.episodic_window,
    contextTokens: memory.context_tokens,
    semanticEnabled: memory.semantic_enabled,
  },
  features: {
    agentRuntimeV1: features.agent_runtime_v1,
    memoryV1: features.memory_v1,
    workersV1: features.workers_v1,
  },
  files: {
    maxFileBytes: files.max_file_bytes,
    maxFiles: files.max_files,
    maxBytes: files.max_bytes,
    maxVersions: files.max_versions,
    executableOnDisk: files.executable_on_disk,
    maxUncitedBytes: files.max_uncited_bytes,
  },
  retention: {
    eventsDays: retention.events_days,
    idempotencyDays: retention.idempotency_days,
    maxLogBytes: retention.max_log_bytes,
    metricsDays: retention.metrics_days,
    stateChangesDays: retention.state_changes_days,
  },
  messages: { maxHops: messages.max_hops },
});

export interface BuildContext {
  /** Absolute path of the file, null for the built-in defaults. */
  readonly source: string | null;
  /** Folder that relative paths in the file start from. */
  readonly folder: string;
  readonly homeDir: string;
  readonly env: Environment;
}

/**
 * Fills a validated file with its defaults from the environment. Warnings and settings are added
 * later.
 */
export const buildConfig = (
  file: ConfigFile,
  { source, folder, homeDir, env }: BuildContext,
): AntiphonConfig => {
  const toPath = pathFrom(folder, homeDir);
  const [first = defaultProvider(env), ...others] = file.providers.map(provider);
  const providers = [first, ...others];
  const providerOf = (name: string | undefined): ProviderConfig =>
    providers.find((candidate) => candidate.name === name) ?? first;
  const agents = file.agents.map((item) => agent(item, providerOf(item.provider), toPath));
  return {
    source,
    ...settings(file),
    providers,
    agents: agents.length === 0 ? [defaultAgent(first, defaultModel(first))] : agents,
    plugins: file.plugins.map((item) => plugin(item, toPath)),
    bindings: file.bindings.map((item) => binding(item, agents)),
    prices: [...file.prices.map(price), ...DEFAULT_PRICES],
    warnings: [],
    settings: [],
  };
};
