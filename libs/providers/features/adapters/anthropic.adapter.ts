import type { ModelAnswer, ModelRequest, ModelSink } from '@antiphon/providers-domain';
import type { ModelParameters } from '@antiphon/config';
import { anthropicFields, renderCached } from './anthropic-request.js';
import { AnthropicReader } from './anthropic-response.js';
import { withScope } from './learned-parameters.js';
import type { LearnedParameters } from './learned-parameters.js';
import { endpointOf } from './provider-settings.js';
import { AnswerBuilder, fieldsOf, textOf } from '../transport/answer-builder.js';
import { parseJson } from '../transport/error-text.js';
import { streamedFailure } from '../transport/failures.js';
import type { HttpTransport } from '../transport/http-transport.js';
import { runCall } from '../transport/provider-call.js';
import type { CallEnvironment, ProviderAdapter, ProviderCall } from '../transport/provider-call.js';
import { boundOfBody, createBodyRenderer } from '../transport/request-format.js';
import type { EventReader } from '../transport/response-reader.js';

export interface AnthropicDeps extends CallEnvironment {
  /** Without `/v1`. */
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly transport: HttpTransport;
  /** False if requests do not ask for the vendor's prompt cache. Default: they do. */
  readonly promptCache?: boolean;
  readonly parameters: LearnedParameters;
}

/** Version of the Messages API whose types the SDK describes. */
const API_VERSION = '2026-10-21';

/** Returns the headers of a request with a key. */
export const anthropicHeaders = (baseUrl: string, apiKey: string): Record<string, string> => ({
  authorization: `Bearer ${apiKey}`,
  // Compatible servers of other vendors still expect the older header.
  ...(new URL(baseUrl).hostname === 'api.anthropic.com' ? {} : { 'x-api-key': apiKey }),
  'anthropic-version': API_VERSION,
});

/** Events that only show that the stream is alive. */
const PING = 'ping';

/** Reads each event as a part of a message. A proxy may leave the names of events out. */
const eventReader = (
  reader: AnthropicReader,
  answer: AnswerBuilder,
  { redact }: CallEnvironment,
): EventReader => ({
  read: ({ event, data }) => {
    if (event === 'error') throw streamedFailure(parseJson(data) ?? data, redact, answer);
    if (event === PING) return;
    for (const part of answer.parseEvent(data)) {
      const type = textOf(fieldsOf(part)?.['type']);
      if (type === 'error') throw streamedFailure(part, redact, answer);
      reader.event(part);
    }
  },
  readWhole: (value) => reader.message(value),
  isComplete: () => reader.isComplete(),
});

/**
 * Calls `POST {baseUrl}/v1/messages`: Anthropic's Messages API, or a server that speaks its format.
 */
export const createAnthropicAdapter = (deps: AnthropicDeps): ProviderAdapter => {
  const { transport, baseUrl, parameters: learned } = deps;
  const url = endpointOf(baseUrl, '/v1/messages');
  const headers = anthropicHeaders(baseUrl, deps.apiKey);
  const renderBody = createBodyRenderer((prompt, parameters: ModelParameters) =>
    renderCached(prompt, parameters, deps.promptCache ?? true),
  );
  const send = (
    request: ModelRequest,
    parameters: ModelParameters,
    sink: ModelSink,
  ): Promise<ModelAnswer> => {
    const answer = new AnswerBuilder(sink);
    const reader = new AnthropicReader(answer);
    const body = renderBody(request, parameters, anthropicFields(request, parameters));
    const post = { url, headers, model: request.model, body };
    const complete = async (call: ProviderCall): Promise<ModelAnswer> => {
      if (request.streaming && parameters.streaming)
        await transport.stream(post, call, eventReader(reader, answer, deps));
      else reader.message(await transport.fetchJson(post, call));
      return withScope(reader.finish(), parameters);
    };
    return runCall(request, deps, {
      complete,
      usage: () => reader.usage(),
      reportedInput: () => reader.reportedInput(),
    });
  };
  return {
    kind: 'anthropic',
    complete: (request, sink) =>
      learned.complete(request, sink, (parameters, observed) => send(request, parameters, observed)),
    inputBound: (prompt) =>
      boundOfBody(renderBody(prompt, learned.of(prompt.model), { max_tokens: 1 }), prompt),
  };
};
