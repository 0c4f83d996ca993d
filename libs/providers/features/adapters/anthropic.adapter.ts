import type Anthropic from '@anthropic-ai/sdk';
import type {
  AssistantMessage,
  ModelAnswer,
  ModelMessage,
  ModelPrompt,
  ModelRequest,
  ModelSink,
  ToolMessage,
} from '@antiphon/providers-domain';
import { markCached } from './anthropic-cache.js';
import { AnthropicReader } from './anthropic-response.js';
import { endpointOf } from './provider-settings.js';
import { AnswerBuilder } from '../transport/answer-builder.js';
import { parseJson } from '../transport/error-text.js';
import { streamedFailure } from '../transport/failures.js';
import type { HttpTransport } from '../transport/http-transport.js';
import { runCall } from '../transport/provider-call.js';
import type { CallEnvironment, ProviderAdapter, ProviderCall } from '../transport/provider-call.js';
import { boundOfBody, createBodyRenderer, portableIds } from '../transport/request-format.js';
import type { EventReader } from '../transport/response-reader.js';

type Body = Omit<Anthropic.MessageCreateParamsNonStreaming, 'stream'>;
type RenameId = (id: string) => string;

/** Anthropic refuses text blocks without a visible character. */
const isBlank = (text: string): boolean => text.trim() === '';

const assistantBlocks = (message: AssistantMessage, renameId: RenameId): Anthropic.ContentBlockParam[] => [
  ...(isBlank(message.text) ? [] : [{ type: 'text' as const, text: message.text }]),
  ...message.toolCalls.map((call) => ({
    type: 'tool_use' as const,
    id: renameId(call.id),
    name: call.name,
    input: call.input,
  })),
];

const resultBlocks = (message: ToolMessage, renameId: RenameId): Anthropic.ToolResultBlockParam[] =>
  message.results.map((result) => ({
    type: 'tool_result',
    tool_use_id: renameId(result.id),
    content: result.content,
    ...(result.isError ? { is_error: true } : {}),
  }));

const renderMessage = (message: ModelMessage, renameId: RenameId): Anthropic.MessageParam => {
  if (message.role === 'user') {
    const text = isBlank(message.text) ? '(empty)' : message.text;
    if (!message.context) return { role: 'user', content: text };
    const blocks = [message.context, text].map((part) => ({ type: 'text' as const, text: part }));
    return { role: 'user', content: blocks };
  }
  if (message.role === 'tool') return { role: 'user', content: resultBlocks(message, renameId) };
  const blocks = assistantBlocks(message, renameId);
  return { role: 'assistant', content: blocks.length === 0 ? '(empty)' : blocks };
};

const renderTools = (prompt: ModelPrompt): Anthropic.Tool[] =>
  prompt.tools.map((tool) => ({
    name: tool.name,
    description: tool.description,
    input_schema: { ...tool.inputSchema, type: 'object' as const },
  }));

/** Renders a request's body in the format of Anthropic's Messages API, tools by `input_schema`. */
export const renderAnthropic = (prompt: ModelPrompt, maxOutputTokens: number): Body => {
  const renameId = portableIds(prompt.messages);
  return {
    model: prompt.model,
    max_tokens: maxOutputTokens,
    messages: prompt.messages.map((message) => renderMessage(message, renameId)),
    ...(isBlank(prompt.system) ? {} : { system: prompt.system }),
    ...(prompt.tools.length === 0 ? {} : { tools: renderTools(prompt) }),
  };
};

export interface AnthropicDeps extends CallEnvironment {
  /** Without `/v1`. */
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly transport: HttpTransport;
  /** False if requests do not ask for the vendor's prompt cache. Default: they do. */
  readonly promptCache?: boolean;
}

/** Version of the Messages API whose types the SDK describes. */
const API_VERSION = '2026-10-21';

const headersFor = (baseUrl: string, apiKey: string): Record<string, string> => ({
  authorization: `Bearer ${apiKey}`,
  // Compatible servers of other vendors still expect the older header.
  ...(new URL(baseUrl).hostname === 'api.anthropic.com' ? {} : { 'x-api-key': apiKey }),
  'anthropic-version': API_VERSION,
});

/**
 * Events that are parts of a message. Others, such as pings, only show that the stream is alive.
 */
const MESSAGE_EVENT = /^(?:message|content_block)_/;

const eventReader = (
  reader: AnthropicReader,
  answer: AnswerBuilder,
  { redact }: CallEnvironment,
): EventReader => ({
  read: ({ event, data }) => {
    if (event === 'error') throw streamedFailure(parseJson(data) ?? data, redact);
    if (event === undefined || !MESSAGE_EVENT.test(event)) return;
    const value = answer.parseEvent(data);
    if (value !== undefined) reader.event(value);
  },
  isComplete: () => reader.isComplete(),
});

/**
 * Calls `POST {baseUrl}/v1/messages`: Anthropic's Messages API, or a server that speaks its format.
 */
export const createAnthropicAdapter = (deps: AnthropicDeps): ProviderAdapter => {
  const { transport, baseUrl } = deps;
  const url = endpointOf(baseUrl, '/v1/messages');
  const headers = headersFor(baseUrl, deps.apiKey);
  const renderBody = createBodyRenderer((prompt) => {
    const { max_tokens: _limit, ...body } = renderAnthropic(prompt, 1);
    return deps.promptCache === false ? body : markCached(body as Body, prompt.messages);
  });
  const complete = (request: ModelRequest, sink: ModelSink): Promise<ModelAnswer> => {
    const answer = new AnswerBuilder(sink);
    const reader = new AnthropicReader(answer);
    const limit = { max_tokens: request.maxOutputTokens };
    const send = async (call: ProviderCall): Promise<ModelAnswer> => {
      if (request.streaming)
        await transport.stream(
          { url, headers, model: request.model, body: renderBody(request, { ...limit, stream: true }) },
          call,
          eventReader(reader, answer, deps),
        );
      else {
        const body = renderBody(request, limit);
        reader.message(await transport.fetchJson({ url, headers, model: request.model, body }, call));
      }
      return reader.finish();
    };
    return runCall(request, deps, {
      complete: send,
      usage: () => reader.usage(),
      reportedInput: () => reader.reportedInput(),
    });
  };
  return {
    kind: 'anthropic',
    complete,
    inputBound: (prompt) => boundOfBody(renderBody(prompt, { max_tokens: 1 }), prompt.tools.length > 0),
  };
};
