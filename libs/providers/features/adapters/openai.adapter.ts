import { ModelFailure } from '@antiphon/providers-domain';
import type {
  AssistantMessage,
  ModelAnswer,
  ModelMessage,
  ModelPrompt,
  ModelRequest,
  ModelSink,
} from '@antiphon/providers-domain';
import type { ProviderKind } from '@antiphon/config';
import type OpenAI from 'openai';
import { OpenAiReader } from './openai-response.js';
import { endpointOf } from './provider-settings.js';
import { AnswerBuilder, fieldsOf } from '../transport/answer-builder.js';
import { streamedFailure } from '../transport/failures.js';
import type { HttpTransport } from '../transport/http-transport.js';
import { runCall } from '../transport/provider-call.js';
import type { CallEnvironment, ProviderAdapter, ProviderCall } from '../transport/provider-call.js';
import { boundOfBody, createBodyRenderer, portableIds } from '../transport/request-format.js';
import type { EventReader } from '../transport/response-reader.js';

type Message = OpenAI.ChatCompletionMessageParam;
type Body = Omit<OpenAI.ChatCompletionCreateParamsNonStreaming, 'stream'>;
type RenameId = (id: string) => string;

const assistantMessage = (message: AssistantMessage, renameId: RenameId): Message =>
  message.toolCalls.length === 0
    ? { role: 'assistant', content: message.text }
    : {
        role: 'assistant',
        content: message.text === '' ? null : message.text,
        tool_calls: message.toolCalls.map((call) => ({
          id: renameId(call.id),
          type: 'function',
          function: { name: call.name, arguments: JSON.stringify(call.input) },
        })),
      };

const renderMessage = (message: ModelMessage, renameId: RenameId): Message[] => {
  if (message.role === 'user') {
    const parts = [message.context, message.text].filter((part) => part !== undefined);
    return [{ role: 'user', content: parts.join('\n\n') }];
  }
  if (message.role === 'assistant') return [assistantMessage(message, renameId)];
  return message.results.map((result) => ({
    role: 'tool',
    tool_call_id: renameId(result.id),
    // This format has no error flag, so the text carries it.
    content: result.isError ? `Error: ${result.content}` : result.content,
  }));
};

const renderTools = (prompt: ModelPrompt): OpenAI.ChatCompletionFunctionTool[] =>
  prompt.tools.map((tool) => ({
    type: 'function',
    function: { name: tool.name, description: tool.description, parameters: { ...tool.inputSchema } },
  }));

export interface OpenAiDialect {
  /** OpenAI's own models refuse `max_tokens`; most others accept only that. */
  readonly outputLimit: 'max_completion_tokens' | 'max_tokens';
}

/**
 * Renders a request's body in the format of OpenAI's chat completions, tools by `type: function`.
 */
export const renderOpenAi = (
  prompt: ModelPrompt,
  maxOutputTokens: number,
  { outputLimit }: OpenAiDialect,
): Body => {
  const renameId = portableIds(prompt.messages);
  return {
    model: prompt.model,
    [outputLimit]: maxOutputTokens,
    messages: [
      ...(prompt.system.trim() === '' ? [] : [{ role: 'system' as const, content: prompt.system }]),
      ...prompt.messages.flatMap((message) => renderMessage(message, renameId)),
    ],
    ...(prompt.tools.length === 0 ? {} : { tools: renderTools(prompt) }),
  };
};

export interface OpenAiDeps extends CallEnvironment, OpenAiDialect {
  readonly kind: ProviderKind;
  readonly baseUrl: string;
  /** Null for an endpoint without a key: no `authorization` header is sent. */
  readonly apiKey: string | null;
  readonly transport: HttpTransport;
}

/** Reads each event as a chunk. An error has a field of its own, and `[DONE]` ends the stream. */
const eventReader = (
  reader: OpenAiReader,
  answer: AnswerBuilder,
  { redact }: CallEnvironment,
): EventReader => {
  let isDone = false;
  return {
    read: ({ data }) => {
      isDone ||= data.startsWith('[DONE]');
      if (isDone) return;
      const chunk = answer.parseEvent(data);
      const error = fieldsOf(chunk)?.['error'];
      if (error) throw streamedFailure(error, redact);
      if (chunk !== undefined) reader.chunk(chunk);
    },
    isComplete: () => reader.isComplete(),
  };
};

/** Returns true if the server refused the option that ends a stream with its usage. */
const refusesUsageOption = (error: unknown): error is ModelFailure =>
  error instanceof ModelFailure &&
  (error.status === 400 || error.status === 422) &&
  /stream_options|include_usage/.test(error.message);

/**
 * Calls `POST {baseUrl}/chat/completions`: OpenAI, OpenRouter, Ollama, or any server that speaks
 * its format.
 */
export const createOpenAiAdapter = (deps: OpenAiDeps): ProviderAdapter => {
  const { transport, apiKey, outputLimit } = deps;
  const renderBody = createBodyRenderer((prompt) => {
    const { [outputLimit]: _limit, ...body } = renderOpenAi(prompt, 1, deps);
    return body;
  });
  const url = endpointOf(deps.baseUrl, '/chat/completions');
  const headers: Record<string, string> = apiKey === null ? {} : { authorization: `Bearer ${apiKey}` };
  let asksForUsage = true;
  const complete = async (request: ModelRequest, sink: ModelSink): Promise<ModelAnswer> => {
    const answer = new AnswerBuilder(sink);
    const reader = new OpenAiReader(answer);
    const limit = { [outputLimit]: request.maxOutputTokens };
    const usageOption = asksForUsage ? { stream_options: { include_usage: true } } : {};
    const send = async (call: ProviderCall): Promise<ModelAnswer> => {
      if (request.streaming)
        await transport.stream(
          {
            url,
            headers,
            model: request.model,
            body: renderBody(request, { ...limit, ...usageOption, stream: true }),
          },
          call,
          eventReader(reader, answer, deps),
        );
      else {
        const body = renderBody(request, limit);
        reader.completion(await transport.fetchJson({ url, headers, model: request.model, body }, call));
      }
      return reader.finish();
    };
    try {
      return await runCall(request, deps, { complete: send, usage: () => reader.usage() });
    } catch (error) {
      if (!request.streaming || !asksForUsage || !refusesUsageOption(error)) throw error;
      // One attempt is one request: the driver makes the next one, and its usage is estimated.
      asksForUsage = false;
      throw new ModelFailure({ ...error, message: error.message, retryable: true }, { cause: error.cause });
    }
  };
  return {
    kind: deps.kind,
    complete,
    inputBound: (prompt) => boundOfBody(renderBody(prompt, { [outputLimit]: 1 }), prompt.tools.length > 0),
  };
};
