/** The complete configuration, validated, with every default filled in (docs/contract.md §2). */
export interface AntiphonConfig {
  /** Absolute path of the file it came from, null for the built-in defaults. */
  readonly source: string | null;
  readonly gateway: GatewayConfig;
  readonly providers: readonly ProviderConfig[];
  /** At least one; the first is the default agent. */
  readonly agents: readonly AgentConfig[];
  readonly plugins: readonly PluginConfig[];
  readonly bindings: readonly BindingConfig[];
  readonly budgets: BudgetConfig;
  readonly prices: readonly PriceConfig[];
  readonly memory: {
    /** Recent turns in a context, default 5. */
    readonly episodicWindow: number;
    /** Maximum size of a context in tokens, default 4000. */
    readonly contextTokens: number;
    readonly semanticEnabled: boolean;
  };
  readonly features: {
    readonly agentRuntimeV1: boolean;
    readonly memoryV1: boolean;
    readonly workersV1: boolean;
  };
  /** Quotas of the files of a workspace. */
  readonly files: {
    readonly maxFileBytes: number;
    readonly maxFiles: number;
    /** Of all versions that the log keeps. */
    readonly maxBytes: number;
    readonly maxVersions: number;
    /** True if files of the copy on disk keep their executable bit, default false. */
    readonly executableOnDisk?: boolean;
    /** Of refused and unfinished writes. Default 256 MiB. */
    readonly maxUncitedBytes?: number;
  };
  readonly retention: {
    readonly eventsDays: number;
    readonly idempotencyDays: number;
    /** Bytes of a workspace's events above which it takes no new work, default 64 GiB. */
    readonly maxLogBytes?: number;
    readonly metricsDays: number;
    /** Age after which changes of agents' states are deleted, default 31. */
    readonly stateChangesDays: number;
  };
  readonly messages: {
    /** Maximum number of hops of a chain of requests from agent to agent, default 8. */
    readonly maxHops: number;
  };
  /** Problems that do not stop the start, one sentence each. */
  readonly warnings: readonly string[];
  /** Every setting with its origin, without secrets. */
  readonly settings: readonly OwnedSetting[];
}

/** Setting of the effective configuration. */
export interface EffectiveSetting {
  /** Key as in the file; an entry of a list is named, as in `agents[main].model`. */
  readonly key: string;
  /** Value in the unit of the file, null for none. A secret is only `set` or `not set`. */
  readonly value: string | number | boolean | string[] | null;
  readonly origin: 'default' | 'file' | 'environment';
  readonly isSecret: boolean;
}

/** Setting with the workspace that sees it, where `*` means all of them. */
export interface OwnedSetting extends EffectiveSetting {
  readonly workspace: string;
}

export interface GatewayConfig {
  readonly host: string;
  readonly port: number;
  readonly token: string | null;
  /** Addresses and CIDR ranges of reverse proxies, whose headers name the client. */
  readonly trustedProxies: readonly string[];
  /** Origins of web pages that may read the API with a credential of their own. */
  readonly allowedOrigins: readonly string[];
  /** True if local programs need no credential on a loopback host without a token. */
  readonly loopbackWithoutToken: boolean;
  /** Timeout for the headers of a request. */
  readonly headerTimeoutMs: number;
  /** Timeout for a whole request with its body. */
  readonly bodyTimeoutMs: number;
  /** Rate limits of one API key; 0 for no limit. */
  readonly limits: {
    readonly requestsPerSecond: number;
    readonly framesPerSecond: number;
    readonly bytesPerSecond: number;
    /** Sign-ins of one client address, and of one key, in five minutes. */
    readonly signIns: number;
  };
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
  /** Name of the environment variable. Only the provider adapter reads its value. */
  readonly apiKeyEnv: string | null;
  /** True if the key is a stored credential, so that the variable may be unset. */
  readonly storedKey?: boolean;
}

export interface AgentConfig {
  readonly id: string;
  /** Workspace that sees the agent. Absent or `*`: all workspaces. */
  readonly workspace?: string;
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
  /** Folders of the file tree that its tools read; absent for the whole tree. */
  readonly readRoots?: readonly string[];
  /** True if its tools read chats, which are files on read. */
  readonly readChats?: boolean;
  /** Agents that it may ask, message and delegate to; absent for those that may do no more. */
  readonly contacts?: readonly string[];
  /** Further models that members and agents may choose for what derives from it. */
  readonly models?: readonly string[];
  /** Folders that its tools change; absent for the whole tree. */
  readonly writeRoots?: readonly string[];
  readonly fallback: { readonly provider: string; readonly model: string } | null;
  /** Approval rules. A tool without a rule needs no approval. */
  readonly approvals: readonly ApprovalRule[];
  /** Limits below those of the plug-in. */
  readonly toolLimits: readonly ToolLimit[];
  /** Budget that the agent and its descendants share; null or absent = no limit. */
  readonly budget?: AgentBudgetConfig | null;
}

/** Tokens, and integer micro-USD; null = no limit. */
export interface AgentBudgetConfig {
  readonly tokens: number | null;
  readonly microUsd: number | null;
}

export const APPROVAL_MODES = ['always', 'unsafe', 'never'] as const;
/** Roles in ascending order of rights. */
export const APPROVER_ROLES = ['member', 'operator', 'admin'] as const;

/** Approval rule for a tool of an agent. */
export interface ApprovalRule {
  /** `*` stands for every tool of the agent without a rule of its own. */
  readonly tool: string;
  /** `unsafe` asks unless the tool declares itself idempotent. */
  readonly ask: (typeof APPROVAL_MODES)[number];
  readonly expiresAfterMs: number;
  /** Null if no other role is asked. */
  readonly escalateAfterMs: number | null;
  readonly escalateTo: (typeof APPROVER_ROLES)[number];
  readonly answerBy: (typeof APPROVER_ROLES)[number];
}

/** Limits of an agent's calls of a tool. They only lower the plug-in's own; null leaves those. */
export interface ToolLimit {
  /** `*` stands for every tool of the agent without limits of its own. */
  readonly tool: string;
  /** Timeout of one attempt. */
  readonly timeoutMs: number | null;
  readonly maxAttempts: number | null;
  readonly maxBackoffMs: number | null;
}

export interface PluginConfig {
  /** Workspace that it belongs to. Absent or `*`: all workspaces. */
  readonly workspace?: string;
  readonly name: string;
  /** Absolute path, or null for the bundled plug-in of this name. */
  readonly path: string | null;
  readonly kind: 'tool' | 'channel';
  /** Typed capabilities such as `http:api.example.com`. */
  readonly capabilities: readonly string[];
  /** Maximum timeout of one attempt. The tool may declare less. */
  readonly timeoutMs: number;
  readonly memoryMb: number;
  /** Maximum retries that its tool may declare; null for the built-in maximum. */
  readonly retry: { readonly maxAttempts: number | null; readonly maxBackoffMs: number | null };
}

export interface BindingConfig {
  /** Workspace that it belongs to. Absent or `*`: all workspaces. */
  readonly workspace?: string;
  readonly agent: string;
  readonly channel?: string;
  readonly account?: string;
  readonly peer?: string;
  readonly guild?: string;
  readonly team?: string;
}

/** Tokens, and integer micro-USD; null = no limit. */
export interface BudgetLimitConfig {
  readonly session: number | null;
  readonly daily: number | null;
  readonly monthly: number | null;
  readonly sessionMicroUsd: number | null;
  readonly dailyMicroUsd: number | null;
  readonly monthlyMicroUsd: number | null;
}

export interface BudgetConfig extends BudgetLimitConfig {
  /** Workspaces with limits of their own, each with its complete limits. */
  readonly workspaces: readonly (BudgetLimitConfig & { readonly workspace: string })[];
}

export interface PriceConfig {
  readonly provider: string;
  readonly model: string;
  readonly inputMicroUsdPerMtok: number;
  readonly outputMicroUsdPerMtok: number;
}
