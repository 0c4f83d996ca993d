import type { ModelAnswer, ModelRequest, ModelSink } from '@antiphon/providers-domain';
import type { ModelParameters } from '@antiphon/config';
import { anthropicFields, renderCached } from './anthropic-request.js';
import { AnthropicReader } from './anthropic-response.js';
import { converseFields, fromStream, fromWhole, toConverse } from './bedrock-format.js';
import { createSigner } from './bedrock-signing.js';
import { withScope } from './learned-parameters.js';
import type { LearnedParameters } from './learned-parameters.js';
import { endpointOf } from './provider-settings.js';
import { AMAZON_EVENTS, createAmazonParser } from '../transport/amazon-events.js';
import { AnswerBuilder, fieldsOf, textOf } from '../transport/answer-builder.js';
import type { Fields } from '../transport/answer-builder.js';
import { parseJson } from '../transport/error-text.js';
import { streamedFailure } from '../transport/failures.js';
import type { HttpTransport } from '../transport/http-transport.js';
import { runCall } from '../transport/provider-call.js';
import type { CallEnvironment, ProviderAdapter, ProviderCall } from '../transport/provider-call.js';
import { boundOfBody, createBodyRenderer } from '../transport/request-format.js';
import type { EventReader } from '../transport/response-reader.js';

export interface BedrockDeps extends CallEnvironment {
  readonly baseUrl: string;
  /** An API key of Bedrock, or `ID:SECRET` or `ID:SECRET:SESSION_TOKEN` of an access key. */
  readonly apiKey: string;
  /** Empty if nothing names it. Only signed requests need it. */
  readonly region: string;
  readonly transport: HttpTransport;
  readonly promptCache?: boolean;
  readonly parameters: LearnedParameters;
}

/** Status of an exception within a stream, which has none. */
const STATUSES: Readonly<Record<string, number>> = {
  throttlingException: 429,
  modelTimeoutException: 408,
  serviceUnavailableException: 503,
  internalServerException: 500,
  modelStreamErrorException: 500,
  validationException: 400,
};

const exceptionOf = (name: string, data: string): Fields => {
  const message = textOf(fieldsOf(parseJson(data))?.['message']) || name;
  const status = Object.hasOwn(STATUSES, name) ? STATUSES[name] : undefined;
  return { type: name, message, ...(status === undefined ? {} : { code: status }) };
};

/** Reads each event as events of Anthropic's format. The name of an exception begins with `!`. */
const eventReader = (
  reader: AnthropicReader,
  answer: AnswerBuilder,
  { redact }: CallEnvironment,
): EventReader => ({
  media: AMAZON_EVENTS,
  createParser: createAmazonParser,
  read: ({ event = '', data }) => {
    if (event.startsWith('!')) throw streamedFailure(exceptionOf(event.slice(1), data), redact, answer);
    for (const part of answer.parseEvent(data)) for (const one of fromStream(event, part)) reader.event(one);
  },
  readWhole: (value) => reader.message(fromWhole(value)),
  isComplete: () => reader.isComplete(),
});

/**
 * Calls `POST {baseUrl}/model/{model}/converse-stream`, or `/converse`: the API of Bedrock that is
 * the same for the models of all vendors. A stream has binary messages.
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html
 */
export const createBedrockAdapter = (deps: BedrockDeps): ProviderAdapter => {
  const { transport, baseUrl, parameters: learned } = deps;
  const sign = createSigner(deps.apiKey, deps.region, deps.now);
  const renderBody = createBodyRenderer((prompt, parameters: ModelParameters) =>
    toConverse(renderCached(prompt, parameters, deps.promptCache ?? true) as unknown as Fields),
  );
  const send = (
    request: ModelRequest,
    parameters: ModelParameters,
    sink: ModelSink,
  ): Promise<ModelAnswer> => {
    const answer = new AnswerBuilder(sink);
    const reader = new AnthropicReader(answer);
    const { model } = request;
    const isStreamed = request.streaming && parameters.streaming;
    const url = endpointOf(
      baseUrl,
      `/model/${encodeURIComponent(model)}/converse${isStreamed ? '-stream' : ''}`,
    );
    const body = renderBody(request, parameters, converseFields(anthropicFields(request, parameters)));
    const complete = async (call: ProviderCall): Promise<ModelAnswer> => {
      const post = { url, headers: await sign(url, body), model, body };
      if (isStreamed) await transport.stream(post, call, eventReader(reader, answer, deps));
      else reader.message(fromWhole(await transport.fetchJson(post, call)));
      return withScope(reader.finish(), parameters);
    };
    return runCall(request, deps, { complete, usage: () => reader.usage() });
  };
  return {
    kind: 'bedrock',
    complete: (request, sink) =>
      learned.complete(request, sink, (parameters, observed) => send(request, parameters, observed)),
    inputBound: (prompt) =>
      boundOfBody(renderBody(prompt, learned.of(prompt.model), { inferenceConfig: {} }), prompt),
  };
};
