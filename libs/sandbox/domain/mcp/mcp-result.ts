import { completedOutcome } from '../tool-outcome.js';
import type { ToolOutcome } from '../tool-outcome.js';

/** A part of a result, as the protocol has it. Unknown kinds are named and left out. */
export interface McpBlock {
  readonly type: string;
  readonly text?: unknown;
  readonly data?: unknown;
  readonly mimeType?: unknown;
  readonly uri?: unknown;
  readonly name?: unknown;
  readonly resource?: unknown;
}

/** Result of a tool of an MCP server. */
export interface McpResult {
  readonly content: readonly McpBlock[];
  readonly structuredContent?: unknown;
  readonly isError: boolean;
}

const MAX_NAME = 300;

const bytesOfBase64 = (data: string): number => {
  const padding = data.endsWith('==') ? 2 : data.endsWith('=') ? 1 : 0;
  return Math.floor(((data.length - padding) * 3) / 4);
};

const nameOf = (value: unknown): string => (typeof value === 'string' ? value.slice(0, MAX_NAME) : 'unknown');

const leftOut = (what: string, data: unknown, mimeType: unknown): string => {
  const bytes = typeof data === 'string' ? bytesOfBase64(data) : 0;
  return `[${what} of type ${nameOf(mimeType)} with ${bytes} bytes is left out: a tool result is text]`;
};

const renderResource = (resource: unknown): string => {
  const { uri, text, blob, mimeType } = (resource ?? {}) as Readonly<Record<string, unknown>>;
  const head = `[resource ${nameOf(uri)}]`;
  return typeof text === 'string' ? `${head}\n${text}` : `${head}\n${leftOut('data', blob, mimeType)}`;
};

const renderBlock = ({ type, text, data, mimeType, uri, name, resource }: McpBlock): string => {
  switch (type) {
    case 'text':
      return typeof text === 'string' ? text : '';
    case 'image':
    case 'audio':
      return leftOut(type, data, mimeType);
    case 'resource':
      return renderResource(resource);
    case 'resource_link':
      return `[link to the resource ${nameOf(uri)}, named ${nameOf(name)}]`;
    default:
      return `[content of the unknown kind ${nameOf(type)} is left out]`;
  }
};

/** Parses a text that may be the same JSON as the structured content. */
const isSameJson = (text: string, structured: string): boolean => {
  if (text === structured) return true;
  try {
    return JSON.stringify(JSON.parse(text)) === structured;
  } catch {
    return false; // it is plain text
  }
};

/** Servers send structured content as text as well. It is added only if no text has it. */
const renderStructured = ({ content, structuredContent }: McpResult): string[] => {
  if (structuredContent === undefined || structuredContent === null) return [];
  const structured = JSON.stringify(structuredContent);
  const isSent = content.some(({ type, text }) => type === 'text' && isSameJson(String(text), structured));
  return isSent ? [] : [structured];
};

/** Converts a result to text for the model. One of more than `maxBytes` is `TOOL.OUTPUT`. */
export const renderMcpResult = (result: McpResult, maxBytes: number): ToolOutcome => {
  const parts = [...result.content.map(renderBlock), ...renderStructured(result)];
  return completedOutcome(parts.join('\n'), result.isError, maxBytes);
};
