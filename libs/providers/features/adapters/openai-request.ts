import { userPartsOf } from '@antiphon/providers-domain';
import type {
  AssistantMessage,
  ModelFile,
  ModelMessage,
  ModelPrompt,
  UserMessage,
} from '@antiphon/providers-domain';
import type { ModelParameters } from '@antiphon/config';
import type OpenAI from 'openai';
import { returnedReasoning } from './openai-reasoning.js';
import { inputSchemaOf } from './tool-schemas.js';
import type { Fields } from '../transport/answer-builder.js';
import { portableIds, portableName, splitCalls } from '../transport/request-format.js';

type Message = OpenAI.ChatCompletionMessageParam;
type Body = Pick<
  OpenAI.ChatCompletionCreateParamsNonStreaming,
  'model' | 'messages' | 'tools' | 'parallel_tool_calls'
>;

/** Parts that the server of a request wants back with its own messages and tool calls. */
class Returned {
  readonly renameId: (id: string) => string;
  private readonly messages = new Map<string, Fields>();
  private readonly calls = new Map<string, Fields>();

  constructor(messages: readonly ModelMessage[]) {
    const own = new Map<string, string>();
    for (const message of messages) {
      if (message.role !== 'assistant') continue;
      const { fields, calls } = returnedReasoning(message);
      for (const [index, { id }] of message.toolCalls.entries()) {
        if (index === 0) this.messages.set(id, fields);
        const call = calls[index];
        if (call?.id) own.set(id, call.id);
        if (call) this.calls.set(id, call.fields);
      }
    }
    this.renameId = portableIds(messages, own);
  }

  /** Returns the reasoning of a message that calls tools. */
  reasoningOf({ toolCalls }: AssistantMessage, { reasoning }: ModelParameters): Fields {
    const fields = this.messages.get(toolCalls[0]?.id ?? '') ?? {};
    if (reasoning === 'none') return {};
    // The server wants the field in every such message, also in one of another model.
    return reasoning === 'session' && Object.keys(fields).length === 0 ? { reasoning_content: '' } : fields;
  }

  callFields(id: string): Fields {
    return this.calls.get(id) ?? {};
  }
}

/** Returns a text that no server refuses as empty, as some in this format do. */
const visible = (text: string): string => (text.trim() === '' ? '(empty)' : text);

const assistantMessage = (
  message: AssistantMessage,
  returned: Returned,
  parameters: ModelParameters,
): Message => {
  const { text, toolCalls } = message;
  if (toolCalls.length === 0) return { role: 'assistant', content: visible(text) };
  return {
    role: 'assistant',
    ...returned.reasoningOf(message, parameters),
    content: text === '' ? parameters.emptyContent : text,
    tool_calls: toolCalls.map((call) => ({
      ...returned.callFields(call.id),
      id: returned.renameId(call.id),
      type: 'function',
      function: { name: portableName(call.name), arguments: JSON.stringify(call.input) },
    })),
  };
};

/** https://developers.openai.com/api/docs/guides/images-vision and …/guides/pdf-files */
const filePart = ({ media, path, data }: ModelFile): OpenAI.ChatCompletionContentPart => {
  const url = `data:${media.mediaType};base64,${data}`;
  return media.mediaType === 'application/pdf'
    ? { type: 'file', file: { filename: path.slice(path.lastIndexOf('/') + 1), file_data: url } }
    : { type: 'image_url', image_url: { url } };
};

const userParts = (message: UserMessage): OpenAI.ChatCompletionContentPart[] => {
  const context = message.context === undefined ? [] : [{ text: message.context }];
  return [...context, ...userPartsOf(message)].map((part) =>
    'text' in part ? { type: 'text', text: part.text } : filePart(part.file),
  );
};

const renderMessage = (message: ModelMessage, returned: Returned, parameters: ModelParameters): Message[] => {
  if (message.role === 'user') {
    if (message.files) return [{ role: 'user', content: userParts(message) }];
    const parts = [message.context, visible(message.text)].filter((part) => part !== undefined);
    return [{ role: 'user', content: parts.join('\n\n') }];
  }
  if (message.role === 'assistant') return [assistantMessage(message, returned, parameters)];
  return message.results.map((result) => ({
    role: 'tool',
    tool_call_id: returned.renameId(result.id),
    // This format has no error flag, so the text carries it.
    content: result.isError ? `Error: ${result.content}` : result.content,
  }));
};

const renderTools = (prompt: ModelPrompt, parameters: ModelParameters): OpenAI.ChatCompletionFunctionTool[] =>
  prompt.tools.map((tool) => ({
    type: 'function',
    function: {
      name: tool.name,
      description: tool.description,
      parameters: inputSchemaOf(tool, parameters),
    },
  }));

/** Puts the system text before the messages, in the role that the model takes. */
const withSystem = (system: string, messages: Message[], { systemRole }: ModelParameters): Message[] => {
  const [first, ...rest] = messages;
  if (system.trim() === '' || first === undefined) return messages;
  if (systemRole !== 'user') return [{ role: systemRole, content: system }, ...messages];
  if (Array.isArray(first.content) && first.role === 'user')
    return [{ role: 'user', content: [{ type: 'text', text: system }, ...first.content] }, ...rest];
  const text = typeof first.content === 'string' ? first.content : '';
  return [{ role: 'user', content: `${system}\n\n${text}` }, ...rest];
};

/**
 * Renders the part of a request's body that its prompt determines, in the format of OpenAI's chat
 * completions, tools by `type: function`.
 */
export const renderOpenAi = (prompt: ModelPrompt, parameters: ModelParameters): Body => {
  const returned = new Returned(prompt.messages);
  const { parallelToolCalls } = parameters;
  const messages = parallelToolCalls === 'many' ? prompt.messages : splitCalls(prompt.messages);
  const rendered = messages.flatMap((message) => renderMessage(message, returned, parameters));
  return {
    model: prompt.model,
    messages: withSystem(prompt.system, rendered, parameters),
    ...(prompt.tools.length === 0 ? {} : { tools: renderTools(prompt, parameters) }),
    ...(prompt.tools.length > 0 && parallelToolCalls === 'one' ? { parallel_tool_calls: false } : {}),
  };
};
