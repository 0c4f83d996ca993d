/** The whole configuration, parsed and validated once, with every default filled in (contract §2). */
export interface AntiphonConfig {
  /** Absolute path of the file it came from, null for the built-in defaults. */
  readonly source: string | null;
  readonly gateway: { readonly host: string; readonly port: number; readonly token: string | null };
  readonly providers: readonly ProviderConfig[];
  /** At least one; the first is the default agent. */
  readonly agents: readonly AgentConfig[];
  readonly plugins: readonly PluginConfig[];
  readonly bindings: readonly BindingConfig[];
  readonly budgets: BudgetConfig;
  readonly prices: readonly PriceConfig[];
  readonly memory: {
    /** Turns of the recent window, default 5. */
    readonly episodicWindow: number;
    /** Upper bound of an assembled context in tokens, default 4000. */
    readonly contextTokens: number;
    readonly semanticEnabled: boolean;
  };
  readonly features: {
    readonly agentRuntimeV1: boolean;
    readonly memoryV1: boolean;
    readonly workersV1: boolean;
  };
  readonly retention: { readonly eventsDays: number; readonly metricsDays: number };
  /** What is wrong but does not stop the start, one sentence each. */
  readonly warnings: readonly string[];
}

export const PROVIDER_KINDS = [
  'anthropic',
  'openai',
  'openai-compatible',
  'openrouter',
  'ollama',
  'cli',
  'scripted',
] as const;
export type ProviderKind = (typeof PROVIDER_KINDS)[number];

export interface ProviderConfig {
  readonly name: string;
  readonly kind: ProviderKind;
  readonly baseUrl: string | null;
  /** The NAME of the environment variable; its value is read where it is used and goes nowhere else. */
  readonly apiKeyEnv: string | null;
}

export interface AgentConfig {
  readonly id: string;
  readonly name: string;
  readonly role: string | null;
  readonly provider: string;
  readonly model: string;
  readonly systemPrompt: string | null;
  /** Absolute. */
  readonly soulPath: string | null;
  readonly identityDir: string | null;
  readonly tools: readonly string[];
  readonly capabilities: readonly string[];
  /** Model calls in one turn at most, default 10. */
  readonly maxIterations: number;
  readonly position: string | null;
  readonly fallback: { readonly provider: string; readonly model: string } | null;
  /** Tools without a rule are called without asking. */
  readonly approvals: readonly ApprovalRule[];
  /** Tools without one are called as their plug-ins are allowed to be. */
  readonly toolLimits: readonly ToolLimit[];
}

export const APPROVAL_MODES = ['always', 'unsafe', 'never'] as const;
/** From the least to the most. */
export const APPROVER_ROLES = ['member', 'operator', 'admin'] as const;

/** Whether and how somebody is asked before a tool of an agent is called. */
export interface ApprovalRule {
  /** `*`: every tool of the agent that has no rule of its own. */
  readonly tool: string;
  /** `unsafe`: unless the tool declares that it may be called twice. */
  readonly ask: (typeof APPROVAL_MODES)[number];
  readonly expiresAfterMs: number;
  /** Null: nobody else is asked. */
  readonly escalateAfterMs: number | null;
  readonly escalateTo: (typeof APPROVER_ROLES)[number];
  readonly answerBy: (typeof APPROVER_ROLES)[number];
}

/** What an agent's calls of a tool are held to, where the tool is allowed more; null: no less than that. */
export interface ToolLimit {
  /** `*`: every tool of the agent that has no limits of its own. */
  readonly tool: string;
  /** For one try. */
  readonly timeoutMs: number | null;
  readonly maxAttempts: number | null;
  readonly maxBackoffMs: number | null;
}

export interface PluginConfig {
  readonly name: string;
  /** Absolute; null for the module of the bundled plug-in of this name. */
  readonly path: string | null;
  readonly kind: 'tool' | 'channel';
  /** Typed capability strings such as `http:api.example.com`; unknown types are refused when the file is read. */
  readonly capabilities: readonly string[];
  /** For one try of a call, at most: its tool may declare less. */
  readonly timeoutMs: number;
  readonly memoryMb: number;
  /** What its tool may declare of its retries at most; null: whatever a tool may declare. */
  readonly retry: { readonly maxAttempts: number | null; readonly maxBackoffMs: number | null };
}

export interface BindingConfig {
  readonly agent: string;
  readonly channel?: string;
  readonly account?: string;
  readonly peer?: string;
  readonly guild?: string;
  readonly team?: string;
}

/** Tokens, and integer micro-USD; null = no limit. */
export interface BudgetConfig {
  readonly session: number | null;
  readonly daily: number | null;
  readonly monthly: number | null;
  readonly sessionMicroUsd: number | null;
  readonly dailyMicroUsd: number | null;
  readonly monthlyMicroUsd: number | null;
}

export interface PriceConfig {
  readonly provider: string;
  readonly model: string;
  readonly inputMicroUsdPerMtok: number;
  readonly outputMicroUsdPerMtok: number;
}
