import type { ModelAnswer, ModelRequest, ModelSink } from '@antiphon/providers-domain';
import type { ModelParameters } from '@antiphon/config';
import { geminiFields, renderGemini } from './gemini-request.js';
import { GeminiReader } from './gemini-response.js';
import { withScope } from './learned-parameters.js';
import type { LearnedParameters } from './learned-parameters.js';
import { endpointOf } from './provider-settings.js';
import { AnswerBuilder, fieldsOf } from '../transport/answer-builder.js';
import { parseJson } from '../transport/error-text.js';
import { streamedFailure } from '../transport/failures.js';
import type { HttpTransport } from '../transport/http-transport.js';
import { runCall } from '../transport/provider-call.js';
import type { CallEnvironment, ProviderAdapter, ProviderCall } from '../transport/provider-call.js';
import { boundOfBody, createBodyRenderer } from '../transport/request-format.js';
import type { EventReader } from '../transport/response-reader.js';

export interface GeminiDeps extends CallEnvironment {
  /** With the version, such as `/v1beta`. */
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly transport: HttpTransport;
  readonly parameters: LearnedParameters;
}

const TUNED = 'tunedModels/';

/** Returns the path of a model. A name with its collection, as in lists of models, is accepted. */
const pathOf = (model: string): string =>
  model.startsWith(TUNED)
    ? `/${TUNED}${encodeURIComponent(model.slice(TUNED.length))}`
    : `/models/${encodeURIComponent(model.replace(/^models\//, ''))}`;

const urlOf = (baseUrl: string, model: string, isStreamed: boolean): URL => {
  const method = isStreamed ? 'streamGenerateContent' : 'generateContent';
  const url = endpointOf(baseUrl, `${pathOf(model)}:${method}`);
  // Without it the stream is one JSON list.
  if (isStreamed) url.searchParams.set('alt', 'sse');
  return url;
};

/** Reads each event as a part of a response. An error has a field of its own. */
const eventReader = (
  reader: GeminiReader,
  answer: AnswerBuilder,
  { redact }: CallEnvironment,
): EventReader => ({
  read: ({ event, data }) => {
    if (event === 'error') throw streamedFailure(parseJson(data) ?? data, redact, answer);
    for (const part of answer.parseEvent(data)) {
      const error = fieldsOf(Array.isArray(part) ? part[0] : part)?.['error'];
      if (error !== undefined && error !== null) throw streamedFailure(error, redact, answer);
      reader.response(part);
    }
  },
  readWhole: (value) => reader.whole(value),
  isComplete: () => reader.isComplete(),
});

/**
 * Calls `POST {baseUrl}/models/{model}:streamGenerateContent`, or `:generateContent`: Gemini's own
 * API. The key is a header, because addresses are logged.
 * https://ai.google.dev/api/generate-content
 */
export const createGeminiAdapter = (deps: GeminiDeps): ProviderAdapter => {
  const { transport, baseUrl, parameters: learned } = deps;
  const headers = { 'x-goog-api-key': deps.apiKey };
  const renderBody = createBodyRenderer(renderGemini);
  const send = (
    request: ModelRequest,
    parameters: ModelParameters,
    sink: ModelSink,
  ): Promise<ModelAnswer> => {
    const answer = new AnswerBuilder(sink);
    const reader = new GeminiReader(answer);
    const { model } = request;
    const isStreamed = request.streaming && parameters.streaming;
    const body = renderBody(request, parameters, geminiFields(request, parameters));
    const post = { url: urlOf(baseUrl, model, isStreamed), headers, model, body };
    const complete = async (call: ProviderCall): Promise<ModelAnswer> => {
      if (isStreamed) await transport.stream(post, call, eventReader(reader, answer, deps));
      else reader.whole(await transport.fetchJson(post, call));
      return withScope(reader.finish(), parameters);
    };
    return runCall(request, deps, {
      complete,
      usage: () => reader.usage(),
      reportedInput: () => reader.reportedInput(),
    });
  };
  return {
    kind: 'gemini',
    complete: (request, sink) =>
      learned.complete(request, sink, (parameters, observed) => send(request, parameters, observed)),
    inputBound: (prompt) =>
      boundOfBody(renderBody(prompt, learned.of(prompt.model), { generationConfig: {} }), prompt),
  };
};
