import { afterEach, describe, expect, it } from '@jest/globals';
import type { AntiphonConfig } from '@antiphon/config';
import type { ModelAnswer, ModelFailure, ModelMessage, ModelRequest } from '@antiphon/providers-domain';
import { startHttpProvider, type HttpProvider } from '@antiphon/testing/providers';
import { createModels, type Models } from './create-models.js';

// The responses are as described in https://ai.google.dev/api/generate-content,
// https://ai.google.dev/gemini-api/docs/function-calling,
// https://ai.google.dev/gemini-api/docs/thought-signatures and
// https://ai.google.dev/gemini-api/docs/troubleshooting.

const KEY = 'AIza-canary-0123456789abcdef';
type Json = Readonly<Record<string, unknown>>;

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface Reply {
  readonly status?: number;
  readonly type?: string;
  readonly body: string;
}
interface Vendor {
  readonly provider: HttpProvider;
  readonly models: Models;
}

/** Starts a server that plays these replies, one for each request. */
const start = async (replies: readonly Reply[], kind = 'gemini', path = '/v1beta'): Promise<Vendor> => {
  let next = 0;
  const provider = await startHttpProvider((_request, response) => {
    const { status = 200, type = 'text/event-stream', body } = replies[next++] ?? { body: '' };
    response.writeHead(status, { 'content-type': type }).end(body);
  });
  cleanups.push(() => provider.close());
  const providers = [{ name: 'it', kind, baseUrl: `${provider.url}${path}`, apiKeyEnv: 'KEY' }];
  const config = { source: null, providers, parameters: [] } as unknown as AntiphonConfig;
  const models = createModels(config, { KEY });
  cleanups.push(() => models.close());
  return { provider, models };
};

const USER: ModelMessage = { role: 'user', text: 'hello' };
const ask = (models: Models, more: Partial<ModelRequest> = {}, thoughts: string[] = []) =>
  models.complete(
    {
      ...{ provider: 'it', model: 'gemini-3-pro', system: 'Be brief.', messages: [USER], tools: [] },
      ...{ maxOutputTokens: 4_096, signal: new AbortController().signal, streaming: true, ...more },
    },
    { onText: () => undefined, onThought: (delta) => thoughts.push(delta) },
  );
const failureOf = (models: Models, more: Partial<ModelRequest> = {}) =>
  ask(models, more).then(
    () => Promise.reject(new Error('the call did not fail')),
    (error: unknown) => error as ModelFailure,
  );

const response = (parts: readonly Json[], finishReason?: string, more: Json = {}): Json => ({
  candidates: [{ content: { role: 'model', parts }, index: 0, ...(finishReason ? { finishReason } : {}) }],
  modelVersion: 'gemini-3-pro-001',
  ...more,
});
const USAGE = {
  usageMetadata: {
    ...{ promptTokenCount: 100, cachedContentTokenCount: 60, candidatesTokenCount: 7 },
    ...{ thoughtsTokenCount: 20, totalTokenCount: 127 },
  },
};
const sse = (...events: readonly Json[]): Reply => ({
  body: events.map((event) => `data: ${JSON.stringify(event)}\r\n\r\n`).join(''),
});
const json = (value: unknown, status = 200): Reply => ({
  ...{ status, type: 'application/json; charset=UTF-8', body: JSON.stringify(value) },
});
const DONE = sse(response([{ text: 'done' }], 'STOP', USAGE));

const CALL = { functionCall: { name: 'echo', args: { say: 'x' } } };
const bodyOf = ({ provider }: Vendor, index = 0) => provider.requests[index]?.body as Json;

/** Returns the messages of the next step, as a turn builds them from its events. */
const nextStep = (answer: ModelAnswer): readonly ModelMessage[] => {
  const { text, thought, toolCalls, providerState } = answer;
  const calls = toolCalls.map(({ name, input }, index) => ({ id: `c${index}`, name, input: input as never }));
  const results = calls.map(({ id, name }, index) => ({ id, name, content: 'ok', isError: index === 1 }));
  const own = providerState === undefined ? {} : { providerState, thought };
  return [USER, { role: 'assistant', text, toolCalls: calls, ...own }, { role: 'tool', results }];
};

describe('a call of Gemini', () => {
  it('posts to the model’s stream with the key in a header, and never in the address', async () => {
    const vendor = await start([DONE]);
    await ask(vendor.models, { temperature: 0.5, thinking: 'high' });
    const [request] = vendor.provider.requests;
    expect(request?.path).toBe('/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse');
    expect(request?.headers['x-goog-api-key']).toBe(KEY);
    expect(request?.headers.authorization).toBeUndefined();
    expect(request?.body).toEqual({
      generationConfig: {
        ...{ maxOutputTokens: 4_096, temperature: 0.5 },
        thinkingConfig: { thinkingLevel: 'high', includeThoughts: true },
      },
      contents: [{ role: 'user', parts: [{ text: 'hello' }] }],
      systemInstruction: { parts: [{ text: 'Be brief.' }] },
    });
  });

  it('has a version in its address, and the name of a model cannot leave its place', async () => {
    const vendor = await start([DONE, DONE], 'gemini', '');
    await ask(vendor.models, { model: 'models/gemini-2.5-pro' });
    await ask(vendor.models, { model: '../x?y=1', streaming: true });
    expect(vendor.provider.requests.map(({ path }) => path)).toEqual([
      '/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse',
      '/v1beta/models/..%2Fx%3Fy%3D1:streamGenerateContent?alt=sse',
    ]);
  });

  it('asks for a budget of thinking where the model takes no level', async () => {
    const refused = { error: { code: 400, message: 'Thinking level is not supported for this model.' } };
    const vendor = await start([json(refused, 400), DONE, DONE]);
    await ask(vendor.models, { thinking: 2_048 });
    await ask(vendor.models, { thinking: 2_048, model: 'gemini-2.5-flash' });
    for (const index of [1, 2])
      expect(bodyOf(vendor, index)['generationConfig']).toMatchObject({
        thinkingConfig: { thinkingBudget: 2_048, includeThoughts: true },
      });
  });

  it('describes tools by JSON Schema, and by plain schemas where that is refused', async () => {
    const refused = {
      error: { code: 400, message: 'Invalid JSON payload. Unknown name "parametersJsonSchema" at tools[0]' },
    };
    const vendor = await start([json(refused, 400), DONE]);
    const inputSchema = { type: 'object', properties: { a: { type: ['string', 'null'] } }, $defs: {} };
    const tools = [
      { name: 'echo', description: 'Says.', inputSchema },
      { name: 'now', description: 'Tells.', inputSchema: { type: 'object' } },
    ];
    await ask(vendor.models, { tools });
    expect(bodyOf(vendor)['tools']).toMatchObject([
      { functionDeclarations: [{ name: 'echo', parametersJsonSchema: inputSchema }, { name: 'now' }] },
    ]);
    expect(bodyOf(vendor, 1)['tools']).toEqual([
      {
        functionDeclarations: [
          {
            ...{ name: 'echo', description: 'Says.' },
            parameters: { type: 'object', properties: { a: { type: 'string' } } },
          },
          { name: 'now', description: 'Tells.' },
        ],
      },
    ]);
  });
});

describe('an answer of Gemini', () => {
  it('counts thoughts as output and names the cached input, and thoughts are no text', async () => {
    const vendor = await start([
      sse(
        response([{ text: 'I think', thought: true }], undefined, {
          usageMetadata: { promptTokenCount: 100 },
        }),
        response([{ text: 'two ' }]),
        response([{ text: 'words' }], 'STOP', USAGE),
      ),
    ]);
    const thoughts: string[] = [];
    expect(await ask(vendor.models, {}, thoughts)).toMatchObject({
      ...{ text: 'two words', thought: 'I think', finishReason: 'stop', model: 'gemini-3-pro-001' },
      usage: { inputTokens: 100, cacheReadTokens: 60, outputTokens: 27 },
    });
    expect(thoughts.join('')).toBe('I think');
  });

  it.each([
    ['one response', json(response([{ text: 'whole' }], 'STOP', USAGE))],
    ['a list', json([response([{ text: 'who' }]), response([{ text: 'le' }], 'STOP', USAGE)])],
  ])('is read whole as %s, also where a stream was asked for', async (_form, reply) => {
    const vendor = await start([reply, reply]);
    for (const streaming of [false, true])
      expect(await ask(vendor.models, { streaming })).toMatchObject({
        ...{ text: 'whole', usage: { outputTokens: 27 } },
      });
    expect(vendor.provider.requests[0]?.path).toBe('/v1beta/models/gemini-3-pro:generateContent');
  });

  // @shows U23
  it.each([
    ['MAX_TOKENS', 'length'],
    ['SAFETY', 'content_filter'],
    ['RECITATION', 'content_filter'],
    ['PROHIBITED_CONTENT', 'content_filter'],
    ['LANGUAGE', 'other'],
    ['A_LATER_REASON', 'other'],
  ])('that ends by %s is cut by %s', async (reason, finishReason) => {
    const vendor = await start([sse(response([{ text: 'so far' }], reason, USAGE))]);
    expect(await ask(vendor.models)).toMatchObject({ text: 'so far', finishReason });
  });

  // @shows U23
  it('is filtered where the prompt is blocked, and costs its input', async () => {
    const usageMetadata = { promptTokenCount: 9, totalTokenCount: 9 };
    const vendor = await start([sse({ promptFeedback: { blockReason: 'SAFETY' }, usageMetadata })]);
    expect(await ask(vendor.models)).toMatchObject({
      ...{ text: '', finishReason: 'content_filter', usage: { inputTokens: 9, outputTokens: 0 } },
    });
  });

  it.each(['MALFORMED_FUNCTION_CALL', 'UNEXPECTED_TOOL_CALL'])(
    'that ends by %s fails with its usage and is tried again',
    async (reason) => {
      const vendor = await start([sse(response([], reason, USAGE))]);
      const failure = await failureOf(vendor.models);
      expect(failure).toMatchObject({ reason: 'provider_protocol', retryable: true });
      expect(failure.message).toContain(reason);
      expect(failure.usage).toMatchObject({ outputTokens: 27 });
    },
  );

  it('without a reason to end is incomplete, and only its input is known', async () => {
    const usageMetadata = { promptTokenCount: 100, candidatesTokenCount: 1 };
    const vendor = await start([sse(response([{ text: 'half' }], undefined, { usageMetadata }))]);
    const failure = await failureOf(vendor.models);
    expect(failure).toMatchObject({ reason: 'provider_protocol', retryable: true });
    expect(failure.message).toContain('before it was complete');
    expect(failure.usage).toBeUndefined();
    expect(failure.reportedInput).toEqual({ inputTokens: 100 });
  });
});

describe('tool calls of Gemini', () => {
  it('are sent back with their signatures and ids, and their results as one content', async () => {
    const parts = [
      { text: 'I will look.' },
      { ...CALL, functionCall: { ...CALL.functionCall, id: 'fc/1' }, thoughtSignature: 'EqQB+/=' },
      { functionCall: { name: 'now', args: {}, id: 'fc/2' } },
    ];
    const vendor = await start([sse(response(parts, 'STOP', USAGE)), DONE]);
    const answer = await ask(vendor.models);
    expect(answer).toMatchObject({
      finishReason: 'tool_calls',
      toolCalls: [{ name: 'echo' }, { name: 'now' }],
    });
    await ask(vendor.models, { messages: nextStep(answer) });
    const [, model, results] = bodyOf(vendor, 1)['contents'] as readonly Json[];
    expect(model).toEqual({ role: 'model', parts });
    expect(results).toEqual({
      role: 'user',
      parts: [
        { functionResponse: { id: 'fc/1', name: 'echo', response: { output: 'ok' } } },
        { functionResponse: { id: 'fc/2', name: 'now', response: { error: 'ok' } } },
      ],
    });
  });

  it('may have no ids', async () => {
    const vendor = await start([sse(response([CALL, CALL], 'STOP', USAGE)), DONE]);
    const answer = await ask(vendor.models, { model: 'gemini-2.5-pro' });
    expect(answer.providerState).toBeUndefined();
    await ask(vendor.models, { model: 'gemini-2.5-pro', messages: nextStep(answer) });
    const [, model, results] = bodyOf(vendor, 1)['contents'] as readonly { readonly parts: Json[] }[];
    expect(model?.parts).toEqual([CALL, CALL]);
    expect(results?.parts.map((part) => (part['functionResponse'] as Json)['id'])).toEqual([
      undefined,
      undefined,
    ]);
  });

  it('of another model have the signature that the vendor names for them', async () => {
    const vendor = await start([DONE]);
    const messages: ModelMessage[] = [
      USER,
      { role: 'assistant', text: '', toolCalls: [{ id: 'a', name: 'echo', input: {} }] },
      { role: 'tool', results: [{ id: 'a', name: 'echo', content: 'ok', isError: false }] },
    ];
    await ask(vendor.models, { messages });
    expect((bodyOf(vendor)['contents'] as readonly Json[])[1]).toMatchObject({
      parts: [{ thoughtSignature: 'skip_thought_signature_validator' }],
    });
  });
});

describe('a refusal by Gemini', () => {
  const error = (code: number, status: string, message: string, details: readonly Json[] = []): Json => ({
    error: { code, message, status, details },
  });
  const KEY_REFUSED = error(400, 'INVALID_ARGUMENT', `API key not valid: ${KEY}`, [
    { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID' },
  ]);

  it.each([
    ['an object', KEY_REFUSED],
    ['a list', [KEY_REFUSED]],
  ])('of the key as %s says so, without the key', async (_form, body) => {
    const vendor = await start([json(body, 400)]);
    const failure = await failureOf(vendor.models);
    expect(failure).toMatchObject({ status: 400, refused: true, retryable: false });
    expect(failure.message).toContain('API key not valid: [redacted]; the provider refused the key');
  });

  it('by a limit or an overload is tried again', async () => {
    const full = json(error(503, 'UNAVAILABLE', 'The model is overloaded.'), 503);
    const vendor = await start([json([error(429, 'RESOURCE_EXHAUSTED', 'Slow down.')], 429), full]);
    for (const status of [429, 503])
      expect(await failureOf(vendor.models)).toMatchObject({ status, refused: true, retryable: true });
  });

  it('within a stream costs nothing and is tried again where that can help', async () => {
    const busy = error(503, 'UNAVAILABLE', 'The model is overloaded.');
    const vendor = await start([sse(busy), json([busy])]);
    for (const _ of [1, 2])
      expect(await failureOf(vendor.models)).toMatchObject({ status: 503, refused: true, retryable: true });
  });
});

describe('a provider of kind azure-openai', () => {
  const answer = {
    choices: [{ message: { content: 'hi' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 1, completion_tokens: 1 },
  };

  // https://learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle
  it.each([
    ['', '/openai/v1/chat/completions'],
    ['/openai/v1', '/openai/v1/chat/completions'],
    [
      '/openai/deployments/mine?api-version=2024-10-21',
      '/openai/deployments/mine/chat/completions?api-version=2024-10-21',
    ],
  ])('at %j is called at %s with the key in a header of its own', async (path, at) => {
    const vendor = await start([json(answer)], 'azure-openai', path);
    expect(await ask(vendor.models, { model: 'mine', streaming: false })).toMatchObject({ text: 'hi' });
    const [request] = vendor.provider.requests;
    expect(request?.path).toBe(at);
    expect(request?.headers['api-key']).toBe(KEY);
    expect(request?.headers.authorization).toBeUndefined();
    expect(bodyOf(vendor)).toMatchObject({ max_completion_tokens: 4_096 });
  });
});
