/** Nest's token for the `McpServers` of this process. */
export const MCP_SERVERS = Symbol('McpServers');
/** Nest's token for the `McpRegistry` of this process. */
export const MCP_REGISTRY = Symbol('McpRegistry');
