import { clipAt, clipMiddle, leftOutNote } from '@antiphon/kernel';
import type { ModelMessage, ModelPrompt, ModelTool } from '@antiphon/providers-domain';

/** Tokens that a vendor adds around each message or tool. */
const OVERHEAD_TOKENS = 4;
/** Cautious for prose (about 4 bytes a token); about right for code and 3-byte scripts. */
const BYTES_PER_TOKEN = 3;
/** Maximum UTF-8 length of one UTF-16 unit. */
const MAX_BYTES_PER_UNIT = 3;

/** Returns the UTF-8 length of a text in bytes. A native count: texts of 100 KB are counted often. */
export const utf8Length = (text: string): number => Buffer.byteLength(text);

/**
 * Estimates a text's tokens, cautiously and the same for every model. Contexts are sized by it; the
 * cost of a call is bounded by `ModelPort.inputBound` instead.
 */
export const estimateTokens = (text: string): number => Math.ceil(utf8Length(text) / BYTES_PER_TOKEN);

const jsonTokens = (value: unknown): number => estimateTokens(JSON.stringify(value));

/** Estimates the text of a message. Files that are sent as bytes have a bound of their own. */
export const estimateMessage = (message: ModelMessage): number => {
  switch (message.role) {
    case 'user':
      return OVERHEAD_TOKENS + estimateTokens(message.text) + estimateTokens(message.context ?? '');
    case 'assistant':
      return message.toolCalls.reduce(
        (sum, { name, input }) => sum + OVERHEAD_TOKENS + estimateTokens(name) + jsonTokens(input),
        OVERHEAD_TOKENS + estimateTokens(message.text),
      );
    case 'tool':
      return message.results.reduce(
        (sum, { content }) => sum + OVERHEAD_TOKENS + estimateTokens(content),
        OVERHEAD_TOKENS,
      );
  }
};

export const estimateMessages = (messages: readonly ModelMessage[]): number =>
  messages.reduce((sum, message) => sum + estimateMessage(message), 0);

export const estimateTools = (tools: readonly ModelTool[]): number =>
  tools.reduce((sum, tool) => sum + OVERHEAD_TOKENS + jsonTokens(tool), 0);

export const estimatePrompt = ({
  system,
  messages,
  tools,
}: Pick<ModelPrompt, 'system' | 'messages' | 'tools'>): number =>
  estimateTokens(system) + estimateMessages(messages) + estimateTools(tools);

/** Clips a text to `tokens` by the estimate and appends a note with its whole length. */
export const clipToTokens = (text: string, tokens: number): string => {
  let room = tokens * BYTES_PER_TOKEN;
  if (text.length * MAX_BYTES_PER_UNIT <= room) return text;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    room -= unit <= 0x7f ? 1 : unit <= 0x7ff || (unit >= 0xd800 && unit <= 0xdfff) ? 2 : 3;
    if (room < 0) return clipAt(text, i);
  }
  return text;
};

/** A result of a tool, as a session has it. */
interface ToolResult {
  readonly callId: string;
  readonly content: string;
  readonly stored?: { readonly size: number };
}

/**
 * Clips a result to `tokens` by the estimate: its head and tail, with a note between them. The note
 * names its size and the tools that read the rest.
 */
export const clipResult = ({ callId, content, stored }: ToolResult, tokens: number): string => {
  const bytes = tokens * BYTES_PER_TOKEN;
  if (content.length * MAX_BYTES_PER_UNIT <= bytes) return content;
  return clipMiddle(content, bytes, leftOutNote(callId, stored?.size ?? utf8Length(content)));
};
