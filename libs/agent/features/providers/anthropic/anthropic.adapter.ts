import type Anthropic from '@anthropic-ai/sdk';
import type { ModelAnswer, ModelRequest, ModelSink } from '@antiphon/agent-domain';
import type { ProviderAdapter } from '../provider-adapter.js';
import { createAnswerBuilder } from '../transport/answer-builder.js';
import type { Flight } from '../transport/flight.js';
import { carryFlight, type ProviderFetch } from '../transport/http-fetch.js';
import { boundOfBody } from '../transport/input-bound.js';
import { readStream, type StreamReader } from '../transport/read-stream.js';
import { runCall, streamedFailure, type CallEnvironment } from '../transport/run-call.js';
import { createAnthropicReader, type AnthropicReader } from './anthropic-answer.js';
import { renderAnthropic } from './anthropic-request.js';

export interface AnthropicOptions extends CallEnvironment {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly fetch: ProviderFetch;
}

/** Endpoints that only look like Anthropic's still ask for its older header. */
const compatibleHeaders = ({ baseUrl, apiKey }: AnthropicOptions) =>
  new URL(baseUrl).hostname === 'api.anthropic.com' ? {} : { 'x-api-key': apiKey };

/** Loaded at the first call: an SDK costs 0.2 s and some megabytes that most deployments need once. */
const createClient = async (options: AnthropicOptions): Promise<Anthropic> => {
  const { default: Client } = await import('@anthropic-ai/sdk');
  return new Client({
    apiKey: options.apiKey,
    baseURL: options.baseUrl,
    fetch: options.fetch,
    defaultHeaders: compatibleHeaders(options),
    // Retries, timeouts, logs and spans are ours: an attempt that the log does not know of must not happen.
    maxRetries: 0,
    timeout: options.limits.totalMs + 60_000,
    logLevel: 'off',
    openTelemetry: false,
    webhookKey: null,
  });
};

/** The events that make a message; others, such as pings, are signs of life. */
const PARTS = /^(?:message|content_block)_/;

const errorOf = (data: string): unknown => {
  try {
    return JSON.parse(data) as unknown;
  } catch {
    return data;
  }
};

const streamReader = (reader: AnthropicReader, environment: CallEnvironment): StreamReader => ({
  take: ({ event, data }) => {
    if (event === 'error') throw streamedFailure(errorOf(data), environment);
    if (event !== null && PARTS.test(event)) reader.event(JSON.parse(data));
  },
  isComplete: reader.isComplete,
});

/** Calls Anthropic's Messages API, or what speaks its format at `baseUrl` (without `/v1`). */
export const createAnthropicAdapter = (
  options: AnthropicOptions,
  maxOutputTokens: (model: string) => number,
): ProviderAdapter => {
  let client: Promise<Anthropic> | undefined;
  const load = (): Promise<Anthropic> => (client ??= createClient(options));
  const complete = (request: ModelRequest, sink: ModelSink): Promise<ModelAnswer> => {
    const reader = createAnthropicReader(createAnswerBuilder(sink));
    const body = renderAnthropic(request, request.maxOutputTokens);
    const answer = async (flight: Flight): Promise<ModelAnswer> => {
      const { messages } = await load();
      const fetchOptions = carryFlight(flight);
      if (request.streaming)
        await readStream(
          () => messages.create({ ...body, stream: true }, { fetchOptions }).asResponse(),
          flight,
          streamReader(reader, options),
        );
      else reader.message(await messages.create(body, { fetchOptions }));
      return reader.finish();
    };
    return runCall(request, options, { prepare: load, answer, usage: reader.usage });
  };
  return {
    kind: 'anthropic',
    complete,
    inputBound: (prompt) => boundOfBody(renderAnthropic(prompt, 1), prompt.tools.length > 0),
    maxOutputTokens,
  };
};
