export { isPublicAddress, parseHttpRequest, textCharset } from './egress.js';
export type { HttpMethod, RequestVerdict } from './egress.js';
export { fillSecrets, findSecretNames } from './secret-placeholders.js';
export type { SecretValues } from './secret-placeholders.js';
export type { RejectionCode } from './module-validator/byte-reader.js';
export {
  ABORT,
  EXTISM_FUNCTIONS,
  EXTISM_MODULE,
  HTTP_FUNCTIONS,
  USER_FUNCTIONS,
  USER_MODULE,
  WASI_FUNCTIONS,
  WASI_MODULE,
} from './module-validator/host-functions.js';
export { MAX_MODULE_BYTES, MAX_TABLE_ENTRIES, validateModule } from './module-validator/validate-module.js';
export type { ModuleLimits, ModuleVerdict, PluginKind } from './module-validator/validate-module.js';
export { defaultDescription, parseDescription } from './plugin-description.js';
export type { DescriptionResult, PluginDescription } from './plugin-description.js';
export { findRefusal, MAX_REMOTE_TOOLS, MCP_PREFIX, remoteToolsDecider } from './remote-tools.decider.js';
export type { RemoteTool, RemoteToolCommand, RemoteTools } from './remote-tools.decider.js';
export { TOOL_FAILURES, completedOutcome, toToolOutcome, toolFailed } from './tool-outcome.js';
export type { RunEnd, ToolFailure, ToolOutcome } from './tool-outcome.js';
export { vetUrl } from './vet-url.js';
export type { UrlVerdict, VettedUrl } from './vet-url.js';
export { MAX_ADDED_PLUGINS, currentVersion, pluginMissing, pluginsDecider } from './plugins.decider.js';
export type { AddedPlugin, AddedVersion, PluginCommand, WorkspacePlugins } from './plugins.decider.js';
export { MAX_MCP_SERVERS, mcpServersDecider } from './mcp/mcp-servers.decider.js';
export type { McpCommand, McpServer, McpServers } from './mcp/mcp-servers.decider.js';
export { renderMcpResult } from './mcp/mcp-result.js';
export type { McpBlock, McpResult } from './mcp/mcp-result.js';
