import type { CamelKeys } from './camel-keys.js';
import type { ConfigFile } from './config.schema.js';

type AgentEntry = ConfigFile['agents'][number];
type ChannelEntry = ConfigFile['channels'][number];

/** The file with the defaults that depend on other keys or on the environment. */
export interface ResolvedFile extends Omit<ConfigFile, 'agents' | 'channels'> {
  readonly channels: readonly (ChannelEntry & { readonly plugin: string; readonly max_body_bytes: number })[];
  readonly agents: readonly (AgentEntry & Record<'name' | 'provider' | 'model', string>)[];
}

/**
 * The complete configuration, validated, with every default filled in. Its fields are the keys of
 * docs/contract.md §2 in camel case. Amounts are in milliseconds, bytes, tokens and micro-USD.
 */
export interface AntiphonConfig extends Omit<CamelKeys<ResolvedFile>, 'agents'> {
  /** Absolute path of the file it came from, null for the built-in defaults. */
  readonly source: string | null;
  /** At least one; the first is the default agent. */
  readonly agents: readonly AgentConfig[];
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

type ConfiguredAgent = CamelKeys<ResolvedFile['agents'][number]>;

/** Approval rule for a tool of an agent. A tool without a rule needs no approval. */
export interface ApprovalRule extends Omit<ConfiguredAgent['approvals'][number], 'escalateAfterMs'> {
  /** Null if no other role is asked. */
  readonly escalateAfterMs: number | null;
}

/** Configured agent. The paths are absolute. */
export interface AgentConfig extends Omit<ConfiguredAgent, 'approvals'> {
  readonly approvals: readonly ApprovalRule[];
}

/** Rule of an agent's policy: the first one that matches a call decides on it. */
export type PolicyRule = NonNullable<AgentConfig['policy']>[number];

export type GatewayConfig = AntiphonConfig['gateway'];
export type ProviderConfig = AntiphonConfig['providers'][number];
/** Limits of an agent's calls of a tool. They only lower the plug-in's own; null leaves those. */
export type ToolLimit = AgentConfig['toolLimits'][number];
/** Plug-in with its absolute path, or null for the bundled one of this name. */
export type PluginConfig = AntiphonConfig['plugins'][number];
/** MCP server of the operator's file: a program or a URL. */
export type McpServerConfig = AntiphonConfig['mcp']['servers'][number];
/** A channel, with the name of its plug-in. */
export type ChannelConfig = AntiphonConfig['channels'][number];
export type BudgetConfig = AntiphonConfig['budgets'];
/** Tokens, and integer micro-USD; null = no limit. */
export type BudgetLimitConfig = Omit<BudgetConfig, 'workspaces'>;
export type PriceConfig = AntiphonConfig['prices'][number];
