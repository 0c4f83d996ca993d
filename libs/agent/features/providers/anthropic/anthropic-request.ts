import type Anthropic from '@anthropic-ai/sdk';
import type { AssistantMessage, ModelMessage, ModelPrompt, ToolMessage } from '@antiphon/agent-domain';
import { portableIds } from '../transport/tool-ids.js';

type Body = Omit<Anthropic.MessageCreateParamsNonStreaming, 'stream'>;
type Name = (id: string) => string;

/** Anthropic refuses text blocks without a visible character. */
const isBlank = (text: string): boolean => text.trim() === '';

const assistantBlocks = (message: AssistantMessage, nameOf: Name): Anthropic.ContentBlockParam[] => [
  ...(isBlank(message.text) ? [] : [{ type: 'text' as const, text: message.text }]),
  ...message.toolCalls.map((call) => ({
    type: 'tool_use' as const,
    id: nameOf(call.id),
    name: call.name,
    input: call.input,
  })),
];

const resultBlocks = (message: ToolMessage, nameOf: Name): Anthropic.ToolResultBlockParam[] =>
  message.results.map((result) => ({
    type: 'tool_result',
    tool_use_id: nameOf(result.id),
    content: result.content,
    ...(result.isError ? { is_error: true } : {}),
  }));

const renderMessage = (message: ModelMessage, nameOf: Name): Anthropic.MessageParam => {
  if (message.role === 'user')
    return { role: 'user', content: isBlank(message.text) ? '(empty)' : message.text };
  if (message.role === 'tool') return { role: 'user', content: resultBlocks(message, nameOf) };
  const blocks = assistantBlocks(message, nameOf);
  return { role: 'assistant', content: blocks.length === 0 ? '(empty)' : blocks };
};

/** The request's body in the format of Anthropic's Messages API, tools by `input_schema`. */
export const renderAnthropic = (prompt: ModelPrompt, maxOutputTokens: number): Body => {
  const nameOf = portableIds(prompt.messages);
  return {
    model: prompt.model,
    max_tokens: maxOutputTokens,
    messages: prompt.messages.map((message) => renderMessage(message, nameOf)),
    ...(isBlank(prompt.system) ? {} : { system: prompt.system }),
    ...(prompt.tools.length === 0
      ? {}
      : {
          tools: prompt.tools.map((tool) => ({
            name: tool.name,
            description: tool.description,
            input_schema: { ...tool.inputSchema, type: 'object' as const },
          })),
        }),
  };
};
