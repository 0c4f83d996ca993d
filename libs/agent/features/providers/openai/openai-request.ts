import type { AssistantMessage, ModelMessage, ModelPrompt } from '@antiphon/agent-domain';
import type OpenAI from 'openai';
import { portableIds } from '../transport/tool-ids.js';

type Message = OpenAI.ChatCompletionMessageParam;
type Body = Omit<OpenAI.ChatCompletionCreateParamsNonStreaming, 'stream'>;
type Name = (id: string) => string;

const assistantMessage = (message: AssistantMessage, nameOf: Name): Message =>
  message.toolCalls.length === 0
    ? { role: 'assistant', content: message.text }
    : {
        role: 'assistant',
        content: message.text === '' ? null : message.text,
        tool_calls: message.toolCalls.map((call) => ({
          id: nameOf(call.id),
          type: 'function',
          function: { name: call.name, arguments: JSON.stringify(call.input) },
        })),
      };

const renderMessage = (message: ModelMessage, nameOf: Name): Message[] => {
  if (message.role === 'user') return [{ role: 'user', content: message.text }];
  if (message.role === 'assistant') return [assistantMessage(message, nameOf)];
  return message.results.map((result) => ({
    role: 'tool',
    tool_call_id: nameOf(result.id),
    // This format has no mark for an error, so that the text has to carry it.
    content: result.isError ? `Error: ${result.content}` : result.content,
  }));
};

const tools = (prompt: ModelPrompt): OpenAI.ChatCompletionFunctionTool[] =>
  prompt.tools.map((tool) => ({
    type: 'function',
    function: { name: tool.name, description: tool.description, parameters: { ...tool.inputSchema } },
  }));

export interface OpenAiDialect {
  /** OpenAI's own models refuse `max_tokens`; most others know nothing else. */
  readonly outputLimit: 'max_completion_tokens' | 'max_tokens';
}

/** The request's body in the format of OpenAI's chat completions, tools by `type: function`. */
export const renderOpenAi = (
  prompt: ModelPrompt,
  maxOutputTokens: number,
  { outputLimit }: OpenAiDialect,
): Body => {
  const nameOf = portableIds(prompt.messages);
  return {
    model: prompt.model,
    [outputLimit]: maxOutputTokens,
    messages: [
      ...(prompt.system.trim() === '' ? [] : [{ role: 'system' as const, content: prompt.system }]),
      ...prompt.messages.flatMap((message) => renderMessage(message, nameOf)),
    ],
    ...(prompt.tools.length === 0 ? {} : { tools: tools(prompt) }),
  };
};
