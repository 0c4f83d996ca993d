type Server = Readonly<Record<'server', string>>;

/** Fields of the causes of MCP servers. */
export interface McpFields {
  /** The server describes the tool otherwise than it was approved, or it is new. */
  mcp_tool_unapproved: Server & { readonly tool: string };
  /** `problem` is a text of the server, or of the connection to it. */
  mcp_failed: Server & { readonly problem: string };
  mcp_paused: Server & { readonly until: string };
  mcp_busy: Server & { readonly calls: number };
  mcp_protocol_error: Server & { readonly code: number; readonly text: string };
}

type Texts = { readonly [K in keyof McpFields]: (fields: McpFields[K]) => string };

export const MCP_TEXTS: Texts = {
  mcp_tool_unapproved: ({ server, tool }) =>
    `the MCP server ${server} has changed "${tool}", or it is new. It is not called until an operator approves it: antiphon tool approve ${server}`,
  mcp_failed: ({ server, problem }) => `the MCP server ${server} failed: ${problem}`,
  mcp_paused: ({ server, until }) =>
    `the MCP server ${server} is paused until ${until} after failures in a row`,
  mcp_busy: ({ server, calls }) => `the MCP server ${server} has ${calls} calls in progress; try again later`,
  mcp_protocol_error: ({ server, code, text }) =>
    `the MCP server ${server} refused the call (${code}): ${text}`,
};
