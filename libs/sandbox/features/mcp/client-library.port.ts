import type { McpBlock } from '@antiphon/sandbox-domain';

/*
 * The part of `@modelcontextprotocol/client` that is used. The library is loaded with the first
 * connection, so that a service without MCP servers does not pay for it at its start.
 */

/** A tool as a server lists it. */
export interface ListedTool {
  readonly name: string;
  readonly description?: string;
  readonly inputSchema?: unknown;
  readonly annotations?: { readonly readOnlyHint?: boolean; readonly idempotentHint?: boolean };
}

export interface RequestOptions {
  readonly signal?: AbortSignal;
  readonly timeout: number;
  readonly maxTotalTimeout: number;
  readonly resetTimeoutOnProgress: boolean;
}

export interface JsonRpcMessage {
  readonly jsonrpc: '2.0';
}

/** Channel of messages to one server. */
export interface Transport {
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  onmessage?: ((message: JsonRpcMessage) => void) | undefined;
  start(): Promise<void>;
  send(message: JsonRpcMessage): Promise<void>;
  close(): Promise<void>;
}

export interface ListPage {
  readonly tools?: readonly ListedTool[];
  readonly nextCursor?: string;
}

export interface Client {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  connect(transport: Transport, options: RequestOptions): Promise<void>;
  close(): Promise<void>;
  getServerCapabilities(): Readonly<Record<'tools' | 'resources' | 'prompts', unknown>> | undefined;
  getNegotiatedProtocolVersion(): string | undefined;
  request(
    request: { readonly method: string; readonly params: Readonly<Record<string, unknown>> },
    options: RequestOptions,
  ): Promise<ListPage>;
  callTool(
    params: { readonly name: string; readonly arguments: Readonly<Record<string, unknown>> },
    options: RequestOptions & { readonly toolDefinition?: ListedTool },
  ): Promise<{
    readonly content?: readonly McpBlock[];
    readonly structuredContent?: unknown;
    readonly isError?: boolean;
  }>;
  readResource(
    params: { readonly uri: string },
    options: RequestOptions & { readonly cacheMode: 'bypass' },
  ): Promise<{ readonly contents: readonly unknown[] }>;
  getPrompt(
    params: { readonly name: string; readonly arguments: Readonly<Record<string, string>> },
    options: RequestOptions,
  ): Promise<{ readonly messages: readonly { readonly role: string; readonly content: McpBlock }[] }>;
}

export interface ClientLibrary {
  readonly Client: new (
    info: { readonly name: string; readonly version: string },
    options: Readonly<Record<string, unknown>>,
  ) => Client;
  readonly StreamableHTTPClientTransport: new (
    url: URL,
    options: Readonly<Record<string, unknown>>,
  ) => Transport;
}

export const loadClientLibrary = async (): Promise<ClientLibrary> =>
  (await import('@modelcontextprotocol/client')) as ClientLibrary;
