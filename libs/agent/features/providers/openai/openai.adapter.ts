import { ModelFailure, type ModelAnswer, type ModelRequest, type ModelSink } from '@antiphon/agent-domain';
import type { ProviderKind } from '@antiphon/config';
import type OpenAI from 'openai';
import type { ProviderAdapter } from '../provider-adapter.js';
import { createAnswerBuilder } from '../transport/answer-builder.js';
import type { Flight } from '../transport/flight.js';
import { carryFlight, type ProviderFetch } from '../transport/http-fetch.js';
import { fieldsOf } from '../transport/fields.js';
import { boundOfBody } from '../transport/input-bound.js';
import { readStream, type StreamReader } from '../transport/read-stream.js';
import { runCall, streamedFailure, type CallEnvironment } from '../transport/run-call.js';
import { createOpenAiReader, type OpenAiReader } from './openai-answer.js';
import { renderOpenAi, type OpenAiDialect } from './openai-request.js';

export interface OpenAiOptions extends CallEnvironment, OpenAiDialect {
  readonly kind: ProviderKind;
  readonly baseUrl: string;
  /** Null where the endpoint wants none; then no `authorization` header is sent. */
  readonly apiKey: string | null;
  readonly fetch: ProviderFetch;
}

const createClient = async (options: OpenAiOptions): Promise<OpenAI> => {
  const { default: Client } = await import('openai');
  return new Client({
    // The SDK insists on a key and reads the environment for what is not given.
    apiKey: options.apiKey ?? 'none',
    ...(options.apiKey === null ? { defaultHeaders: { authorization: null } } : {}),
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
    baseURL: options.baseUrl,
    fetch: options.fetch,
    maxRetries: 0,
    timeout: options.limits.totalMs + 60_000,
    logLevel: 'off',
  });
};

/** Events as this format has them: each is a chunk, an error has a field of its own, and the end is told. */
const streamReader = (reader: OpenAiReader, environment: CallEnvironment): StreamReader => {
  let ended = false;
  return {
    take: ({ data }) => {
      ended ||= data.startsWith('[DONE]');
      if (ended) return;
      const chunk = JSON.parse(data) as unknown;
      const error = fieldsOf(chunk)?.['error'];
      if (error) throw streamedFailure(error, environment);
      reader.chunk(chunk);
    },
    isComplete: reader.isComplete,
  };
};

/** Some compatible servers refuse the option that makes a stream end with its usage. */
const refusesUsageOption = (error: unknown): error is ModelFailure =>
  error instanceof ModelFailure &&
  (error.status === 400 || error.status === 422) &&
  /stream_options|include_usage/.test(error.message);

/** Calls `POST {baseUrl}/chat/completions`: OpenAI itself, OpenRouter, Ollama, and whatever else speaks its format. */
export const createOpenAiAdapter = (
  options: OpenAiOptions,
  maxOutputTokens: (model: string) => number,
): ProviderAdapter => {
  let client: Promise<OpenAI> | undefined;
  const load = (): Promise<OpenAI> => (client ??= createClient(options));
  let asksForUsage = true;
  const complete = async (request: ModelRequest, sink: ModelSink): Promise<ModelAnswer> => {
    const reader = createOpenAiReader(createAnswerBuilder(sink));
    const body = renderOpenAi(request, request.maxOutputTokens, options);
    const usageOption = asksForUsage ? { stream_options: { include_usage: true } } : {};
    const answer = async (flight: Flight): Promise<ModelAnswer> => {
      const { completions } = (await load()).chat;
      const fetchOptions = carryFlight(flight);
      if (request.streaming)
        await readStream(
          () => completions.create({ ...body, ...usageOption, stream: true }, { fetchOptions }).asResponse(),
          flight,
          streamReader(reader, options),
        );
      else reader.completion(await completions.create(body, { fetchOptions }));
      return reader.finish();
    };
    try {
      return await runCall(request, options, { prepare: load, answer, usage: reader.usage });
    } catch (error) {
      if (!request.streaming || !asksForUsage || !refusesUsageOption(error)) throw error;
      // One attempt is one request, so that the driver makes the next one; its usage will be estimated.
      asksForUsage = false;
      throw new ModelFailure({ ...error, message: error.message, retryable: true }, { cause: error.cause });
    }
  };
  return {
    kind: options.kind,
    complete,
    inputBound: (prompt) => boundOfBody(renderOpenAi(prompt, 1, options), prompt.tools.length > 0),
    maxOutputTokens,
  };
};
