import { effortOf } from '@antiphon/providers-domain';
import type { ModelAnswer, ModelPrompt, ModelRequest, ModelSink } from '@antiphon/providers-domain';
import type { ModelParameters, ProviderKind } from '@antiphon/config';
import { withScope } from './learned-parameters.js';
import type { LearnedParameters } from './learned-parameters.js';
import { renderOpenAi } from './openai-request.js';
import { createGenerationReader } from './openrouter-generations.js';
import { OpenAiReader, errorOf } from './openai-response.js';
import { endpointOf } from './provider-settings.js';
import { AnswerBuilder, END_OF_STREAM } from '../transport/answer-builder.js';
import { parseJson } from '../transport/error-text.js';
import { streamedFailure } from '../transport/failures.js';
import type { HttpTransport } from '../transport/http-transport.js';
import { runCall } from '../transport/provider-call.js';
import type { CallEnvironment, ProviderAdapter, ProviderCall } from '../transport/provider-call.js';
import { boundOfBody, createBodyRenderer } from '../transport/request-format.js';
import type { EventReader } from '../transport/response-reader.js';

export interface OpenAiDeps extends CallEnvironment {
  readonly kind: ProviderKind;
  readonly baseUrl: string;
  /** Null for an endpoint without a key: no header with one is sent. */
  readonly apiKey: string | null;
  readonly transport: HttpTransport;
  readonly parameters: LearnedParameters;
}

/** Reads each event as a chunk. An error has a field of its own, and `[DONE]` ends the stream. */
const eventReader = (
  reader: OpenAiReader,
  answer: AnswerBuilder,
  { redact }: CallEnvironment,
): EventReader => {
  let isDone = false;
  return {
    read: ({ event, data }) => {
      isDone ||= data.startsWith(END_OF_STREAM);
      if (isDone) return;
      if (event === 'error') throw streamedFailure(parseJson(data) ?? data, redact, answer);
      for (const chunk of answer.parseEvent(data)) {
        const error = errorOf(chunk);
        if (error !== undefined) throw streamedFailure(error, redact, answer);
        reader.chunk(chunk);
      }
    },
    readWhole: (value) => reader.completion(value),
    isComplete: () => reader.isComplete(),
  };
};

const thinkingFields = (
  { thinking }: ModelRequest,
  { thinking: form }: ModelParameters,
): Readonly<Record<string, unknown>> => {
  if (thinking === undefined || form === 'none') return {};
  if (form !== 'reasoning') return { reasoning_effort: effortOf(thinking) };
  return { reasoning: typeof thinking === 'number' ? { max_tokens: thinking } : { effort: thinking } };
};

/** Returns the fields of a request that its prompt does not determine. */
const fieldsFor = (request: ModelRequest, parameters: ModelParameters): Readonly<Record<string, unknown>> => {
  const { outputLimit, maxOutput, streamOptions } = parameters;
  const isStreamed = request.streaming && parameters.streaming;
  return {
    [outputLimit]: Math.min(request.maxOutputTokens, maxOutput ?? Infinity),
    ...(request.temperature !== undefined && parameters.temperature
      ? { temperature: request.temperature }
      : {}),
    ...thinkingFields(request, parameters),
    ...(isStreamed ? { stream: true } : {}),
    ...(isStreamed && streamOptions ? { stream_options: { include_usage: true } } : {}),
  };
};

/**
 * Returns the header of the key. Azure has one of its own.
 * https://learn.microsoft.com/azure/ai-foundry/openai/reference
 */
export const keyHeaders = ({ kind, apiKey }: Pick<OpenAiDeps, 'kind' | 'apiKey'>): Record<string, string> => {
  if (apiKey === null) return {};
  return kind === 'azure-openai' ? { 'api-key': apiKey } : { authorization: `Bearer ${apiKey}` };
};

/**
 * Calls `POST {baseUrl}/chat/completions`: OpenAI, Azure, OpenRouter, Ollama, or any server that
 * speaks its format.
 */
export const createOpenAiAdapter = (deps: OpenAiDeps): ProviderAdapter => {
  const { transport, parameters: learned } = deps;
  const renderBody = createBodyRenderer(renderOpenAi);
  const url = endpointOf(deps.baseUrl, '/chat/completions');
  const headers = keyHeaders(deps);
  const findUsage = deps.kind === 'openrouter' ? createGenerationReader(deps, headers) : undefined;
  const idOf = (reader: OpenAiReader): string | null => {
    const id = findUsage === undefined ? null : reader.generationId();
    // The server may echo the key.
    return id !== null && deps.redact(id) === id ? id : null;
  };
  const send = (
    request: ModelRequest,
    parameters: ModelParameters,
    sink: ModelSink,
  ): Promise<ModelAnswer> => {
    const answer = new AnswerBuilder(sink);
    const reader = new OpenAiReader(answer);
    const { model } = request;
    const body = renderBody(request, parameters, fieldsFor(request, parameters));
    const post = { url, headers, model, body };
    const complete = async (call: ProviderCall): Promise<ModelAnswer> => {
      if (request.streaming && parameters.streaming)
        await transport.stream(post, call, eventReader(reader, answer, deps));
      else reader.completion(await transport.fetchJson(post, call));
      const generationId = idOf(reader);
      const finished = withScope(reader.finish(), parameters);
      return generationId === null ? finished : { ...finished, generationId };
    };
    const generationId = (): string | null => idOf(reader);
    return runCall(request, deps, { complete, usage: () => reader.usage(), generationId });
  };
  const inputBound = (prompt: ModelPrompt): number => {
    const parameters = learned.of(prompt.model);
    return boundOfBody(renderBody(prompt, parameters, { [parameters.outputLimit]: 1 }), prompt);
  };
  return {
    kind: deps.kind,
    complete: (request, sink) =>
      learned.complete(request, sink, (parameters, observed) => send(request, parameters, observed)),
    inputBound,
    ...(findUsage === undefined ? {} : { findUsage }),
  };
};
