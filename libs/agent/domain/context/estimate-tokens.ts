import type { ModelMessage, ModelPrompt, ModelTool } from '../model-port.js';

/** What a vendor adds around each message or tool. */
const OVERHEAD_TOKENS = 4;
/** Cautious for prose (some 4 bytes a token), about right for code and for scripts of three bytes a character. */
export const BYTES_PER_TOKEN = 3;

/** Bytes of a text in UTF-8. */
export const utf8Length = (text: string): number => {
  let bytes = text.length;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    // A surrogate pair is four bytes: two for each half.
    if (unit > 0x7f) bytes += unit > 0x7ff && (unit < 0xd800 || unit > 0xdfff) ? 2 : 1;
  }
  return bytes;
};

/**
 * A cautious estimate of a text's tokens, the same for every model: contexts are sized by it.
 * What a call may cost is bounded by the provider's own count instead (`ModelPort.inputBound`).
 */
export const estimateTokens = (text: string): number => Math.ceil(utf8Length(text) / BYTES_PER_TOKEN);

const jsonTokens = (value: unknown): number => estimateTokens(JSON.stringify(value));

export const estimateMessage = (message: ModelMessage): number => {
  switch (message.role) {
    case 'user':
      return OVERHEAD_TOKENS + estimateTokens(message.text);
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
