import type { AgentConfig, ProviderConfig, ProviderKind } from './antiphon-config.js';

export const DEFAULT_HOST = '127.0.0.1';
export const DEFAULT_PORT = 7400;
export const DEFAULT_AGENT_ID = 'main';

/** Variables that hold a key by convention, in the order in which a start without a file looks for one. */
export const DEFAULT_KEY_ENV: Partial<Record<ProviderKind, string>> = {
  anthropic: 'ANTHROPIC_API_KEY',
  openai: 'OPENAI_API_KEY',
  openrouter: 'OPENROUTER_API_KEY',
};

/** The model of an agent that names none; a kind without one needs `model`. */
export const DEFAULT_MODELS: Partial<Record<ProviderKind, string>> = {
  anthropic: 'claude-sonnet-4-5',
  openai: 'gpt-4o',
  openrouter: 'anthropic/claude-sonnet-4.5',
  scripted: 'scripted',
};

export const DEFAULT_TOOLS: readonly string[] = ['echo', 'calculator'];
/** Registered without configuration (contract §2). */
export const BUNDLED_PLUGINS: readonly string[] = ['echo', 'calculator', 'http-get'];

export const DEFAULT_MAX_ITERATIONS = 10;
export const DEFAULT_PLUGIN_TIMEOUT_MS = 5_000;
export const DEFAULT_PLUGIN_MEMORY_MB = 64;
export const DEFAULT_EPISODIC_WINDOW = 5;
export const DEFAULT_CONTEXT_TOKENS = 4_000;
export const DEFAULT_RETENTION_DAYS = 30;
/** A day to answer, and an hour until the next one is asked. */
export const DEFAULT_APPROVAL_EXPIRES_S = 86_400;
export const DEFAULT_APPROVAL_ESCALATES_S = 3_600;

/** An environment, as `process.env` has it. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** An empty or blank variable counts as absent. */
export const isSet = (env: Environment, name: string): boolean => (env[name] ?? '').trim() !== '';

/** The provider of a start that configures none: the first whose key is in the environment, else `scripted`. */
export const defaultProvider = (env: Environment): ProviderConfig => {
  for (const [kind, apiKeyEnv] of Object.entries(DEFAULT_KEY_ENV) as [ProviderKind, string][])
    if (isSet(env, apiKeyEnv)) return { name: kind, kind, baseUrl: null, apiKeyEnv };
  return { name: 'scripted', kind: 'scripted', baseUrl: null, apiKeyEnv: null };
};

/** The agent of a start that configures none. */
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
});
