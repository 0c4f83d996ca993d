import type Anthropic from '@anthropic-ai/sdk';
import { budgetWithin, effortOf, userPartsOf } from '@antiphon/providers-domain';
import type {
  AssistantMessage,
  ModelMessage,
  ModelPrompt,
  ModelRequest,
  ToolMessage,
  UserPart,
} from '@antiphon/providers-domain';
import type { ModelParameters } from '@antiphon/config';
import { markCached } from './anthropic-cache.js';
import { returnedParts } from './anthropic-state.js';
import type { ReturnedPart } from './anthropic-state.js';
import { inputSchemaOf } from './tool-schemas.js';
import { portableIds, portableName, splitCalls } from '../transport/request-format.js';

type Body = Pick<
  Anthropic.MessageCreateParamsNonStreaming,
  'model' | 'messages' | 'system' | 'tools' | 'tool_choice'
>;
type Block = Anthropic.ContentBlockParam;
type RenameId = (id: string) => string;

/** Maximum length of the title of a document, characters. */
const MAX_TITLE = 200;

/** Anthropic refuses text blocks without a visible character. */
const isBlank = (text: string): boolean => text.trim() === '';

const textBlocks = (text: string): Block[] => (isBlank(text) ? [] : [{ type: 'text', text }]);

/** Thinking without text, for a message of another model where the server wants one in each. */
const EMPTY_THINKING: ReturnedPart = {
  kind: 'block',
  block: { type: 'thinking', thinking: '', signature: '' },
};

/** Returns the order of a message's blocks: the vendor's own, else the text and then the calls. */
const partsOf = (message: AssistantMessage, { reasoning }: ModelParameters): readonly ReturnedPart[] => {
  const plain: ReturnedPart[] = [{ kind: 'text', text: message.text }];
  if (reasoning === 'none') return plain;
  const returned = returnedParts(message);
  if (returned !== null) return returned;
  return reasoning === 'session' && message.toolCalls.length > 0 ? [EMPTY_THINKING, ...plain] : plain;
};

const assistantBlocks = (
  message: AssistantMessage,
  renameId: RenameId,
  parameters: ModelParameters,
): Block[] => {
  const uses: Block[] = message.toolCalls.map((call) => ({
    type: 'tool_use',
    id: renameId(call.id),
    name: portableName(call.name),
    input: call.input,
  }));
  const parts = partsOf(message, parameters);
  // A text that was joined with an earlier one belongs before the calls.
  const isTextLost = !parts.some(({ kind }) => kind === 'text');
  const blocks = parts.flatMap((part): Block[] => {
    if (part.kind === 'text') return textBlocks(part.text);
    if (part.kind === 'tool') return [];
    return [part.block as unknown as Block];
  });
  const firstTool = parts.findIndex(({ kind }) => kind === 'tool');
  const isOrdered = firstTool !== -1 && parts.slice(firstTool).some(({ kind }) => kind !== 'tool');
  if (isOrdered) return inOrder(parts, uses, isTextLost ? message.text : '');
  return [...blocks, ...(isTextLost ? textBlocks(message.text) : []), ...uses];
};

/** Puts the calls between the blocks where the vendor had them. */
const inOrder = (parts: readonly ReturnedPart[], uses: readonly Block[], lostText: string): Block[] => {
  const rest = [...uses];
  const blocks = parts.flatMap((part): Block[] => {
    if (part.kind === 'text') return textBlocks(part.text);
    return part.kind === 'tool' ? rest.splice(0, 1) : [part.block as unknown as Block];
  });
  const firstUse = blocks.findIndex(({ type }) => type === 'tool_use');
  return [...blocks.slice(0, firstUse), ...textBlocks(lostText), ...blocks.slice(firstUse), ...rest];
};

const resultBlocks = (message: ToolMessage, renameId: RenameId): Anthropic.ToolResultBlockParam[] =>
  message.results.map((result) => ({
    type: 'tool_result',
    tool_use_id: renameId(result.id),
    content: result.content,
    ...(result.isError ? { is_error: true } : {}),
  }));

/** https://platform.claude.com/docs/en/build-with-claude/pdf-support */
const partBlock = (part: UserPart): Anthropic.ContentBlockParam => {
  if ('text' in part) return { type: 'text', text: part.text };
  const { media, path, data } = part.file;
  return media.mediaType === 'application/pdf'
    ? {
        type: 'document',
        source: { type: 'base64', media_type: media.mediaType, data },
        title: path.slice(-MAX_TITLE),
      }
    : { type: 'image', source: { type: 'base64', media_type: media.mediaType, data } };
};

const renderMessage = (
  message: ModelMessage,
  renameId: RenameId,
  parameters: ModelParameters,
): Anthropic.MessageParam => {
  if (message.role === 'user') {
    const text = isBlank(message.text) ? '(empty)' : message.text;
    if (!message.context && !message.files) return { role: 'user', content: text };
    const context = textBlocks(message.context ?? '');
    if (!message.files) return { role: 'user', content: [...context, { type: 'text', text }] };
    return { role: 'user', content: [...context, ...userPartsOf(message).map(partBlock)] };
  }
  if (message.role === 'tool') return { role: 'user', content: resultBlocks(message, renameId) };
  const blocks = assistantBlocks(message, renameId, parameters);
  return { role: 'assistant', content: blocks.length === 0 ? '(empty)' : blocks };
};

const renderTools = (prompt: ModelPrompt, parameters: ModelParameters): Anthropic.Tool[] =>
  prompt.tools.map((tool) => ({
    name: tool.name,
    description: tool.description,
    input_schema: { ...inputSchemaOf(tool, parameters), type: 'object' as const },
  }));

const messagesOf = ({ messages }: ModelPrompt, { parallelToolCalls }: ModelParameters) =>
  parallelToolCalls === 'many' ? messages : splitCalls(messages);

/**
 * Renders the part of a request's body that its prompt determines, in the format of Anthropic's
 * Messages API, tools by `input_schema`.
 */
export const renderAnthropic = (prompt: ModelPrompt, parameters: ModelParameters): Body => {
  const renameId = portableIds(prompt.messages);
  const { parallelToolCalls, systemBlocks } = parameters;
  const messages = messagesOf(prompt, parameters);
  const system = systemBlocks ? [{ type: 'text' as const, text: prompt.system }] : prompt.system;
  const hasTools = prompt.tools.length > 0;
  return {
    model: prompt.model,
    messages: messages.map((message) => renderMessage(message, renameId, parameters)),
    ...(isBlank(prompt.system) ? {} : { system }),
    ...(hasTools ? { tools: renderTools(prompt, parameters) } : {}),
    ...(hasTools && parallelToolCalls === 'one'
      ? { tool_choice: { type: 'auto', disable_parallel_tool_use: true } as const }
      : {}),
  };
};

/** Renders the same, marked for the vendor's prompt cache. */
export const renderCached = (prompt: ModelPrompt, parameters: ModelParameters, isAllowed: boolean): Body => {
  const body = renderAnthropic(prompt, parameters);
  return isAllowed && parameters.promptCache ? markCached(body, messagesOf(prompt, parameters)) : body;
};

/**
 * Returns true if thinking may begin in this request. Between the calls of tools it may only
 * continue: the first message after the user's has to begin with it.
 */
const mayThink = (messages: readonly ModelMessage[], { reasoning }: ModelParameters): boolean => {
  const from = messages.findLastIndex(
    ({ role }, index) => role === 'user' && messages[index - 1]?.role !== 'tool',
  );
  const first = messages
    .slice(from)
    .find((message): message is AssistantMessage => message.role === 'assistant');
  if (first === undefined) return true;
  return reasoning !== 'none' && returnedParts(first)?.[0]?.kind === 'block';
};

type Thinking = Pick<Anthropic.MessageCreateParamsNonStreaming, 'thinking' | 'output_config'>;

const thinkingFields = (request: ModelRequest, parameters: ModelParameters, limit: number): Thinking => {
  const { thinking } = request;
  if (thinking === undefined) return {};
  if (parameters.thinking === 'adaptive')
    return {
      thinking: { type: 'adaptive', display: 'summarized' },
      output_config: { effort: effortOf(thinking) },
    };
  if (parameters.thinking !== 'budget' || !mayThink(request.messages, parameters)) return {};
  const budget = budgetWithin(thinking, limit);
  return budget === null ? {} : { thinking: { type: 'enabled', budget_tokens: budget } };
};

/** Largest temperature of the API. */
const MAX_TEMPERATURE = 1;

/** Returns the fields of a request that its prompt does not determine. */
export const anthropicFields = (
  request: ModelRequest,
  parameters: ModelParameters,
): Readonly<Record<string, unknown>> => {
  const limit = Math.min(request.maxOutputTokens, parameters.maxOutput ?? Infinity);
  const thinking = thinkingFields(request, parameters, limit);
  const { temperature } = request;
  // Thinking is refused with a temperature.
  const isSent = temperature !== undefined && parameters.temperature && thinking.thinking === undefined;
  return {
    max_tokens: limit,
    ...(isSent ? { temperature: Math.min(temperature, MAX_TEMPERATURE) } : {}),
    ...thinking,
    ...(request.streaming && parameters.streaming ? { stream: true } : {}),
  };
};
