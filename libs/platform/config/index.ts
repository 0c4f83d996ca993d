export {
  CALLABLE_KINDS,
  PROVIDER_FACTS,
  keyVariablesOf,
  PROVIDER_KINDS,
  factsOfKind,
} from './provider-kinds.js';
export type { ProviderKind } from './provider-kinds.js';
export type {
  AgentConfig,
  AntiphonConfig,
  ApprovalRule,
  PolicyRule,
  ToolLimit,
  BudgetConfig,
  ChannelConfig,
  BudgetLimitConfig,
  EffectiveSetting,
  GatewayConfig,
  McpServerConfig,
  PluginConfig,
  PriceConfig,
  ProviderConfig,
} from './antiphon-config.js';
export { BUNDLED_CHANNELS } from './channel.schema.js';
export { RESERVED_CHANNELS } from './check-channels.js';
export { createRouter } from './router.js';
export type { Router, RoutingBinding, RoutingKey } from './router.js';
export { CALL_LIMIT_KEYS, CALL_LIMIT_NAMES, DEFAULT_TRIES, resolveCallLimits } from './call-limits.js';
export type { AgentLimits, CallLimitName, CallLimits, ResolvedLimits } from './call-limits.js';
export { maxOutputTokensOf } from './model-outputs.js';
export { baseUrlProblem } from './check-provider-url.js';
export { describeProviders } from './describe-providers.js';
export type { ShownLimits, ShownProvider } from './describe-providers.js';
export { isLoopbackHost, isLoopbackUrl, withoutUrlSecrets } from './provider-url.js';
export { chooseProxy, parseProxy, proxyAddress, secretsOfProxy } from './provider-proxy.js';
export type { ProxyChoice } from './provider-proxy.js';
export { findApprovalRule, ruleOfTool } from './approval-rule.js';
export { CAPABILITY_FORMS, CAPABILITY_TYPES, parseCapability } from './capability.js';
export type { Capability, CapabilityResult } from './capability.js';
export { isLoopback } from './check-rules.js';
export type { ConfigProblem, Place } from './config-problem.js';
export { DEFAULT_AGENT_ID } from './build-config.js';
export { COMPARED_DAYS, DEFAULT_PORT } from './config.schema.js';
export type { Environment } from './build-config.js';
export { effectiveSettings } from './effective-config.js';
export { editDistance, findNearest } from './find-nearest.js';
export { configPaths, loadConfig } from './load-config.js';
export type { LoadOptions } from './load-config.js';
export { findInputs, findParameters } from './model-parameters.js';
export { MAX_CONTEXT, contextSizes } from './model-windows.js';
export type { ContextSizes } from './model-windows.js';
export type { KnownParameters, ModelInputs, ModelParameters } from './model-parameters.js';
export { parseNetwork } from './network.js';
export type { Network } from './network.js';
export { parseConfig } from './parse-config.js';
export type { ParseContext } from './parse-config.js';
export { findPrice, matchesPattern } from './prices.js';
export { REDACTED, redactedConfig } from './load-config.js';
export { budgetLimitsOf, isVisibleIn, workspaceConfig } from './workspace-config.js';
export { configProblems, renderConfigErrors } from './config-problem.js';
export { NATIVE_TOOLS } from './native-tools.js';
export { decideCall } from './tool-policy.js';
export type { PolicyCall, PolicyDecision } from './tool-policy.js';
export { coversTool, expandTools, hasTool, isToolPattern, matchesTool } from './tool-names.js';
export type { NativeToolName } from './native-tools.js';
export { settingTables } from './setting-tables.js';
export type { SettingTable } from './setting-tables.js';
