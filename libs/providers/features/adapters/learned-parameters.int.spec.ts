import { afterEach, describe, expect, it } from '@jest/globals';
import type { AntiphonConfig } from '@antiphon/config';
import {
  ModelFailure,
  type ModelMessage,
  type ModelRequest,
  type ModelTool,
} from '@antiphon/providers-domain';
import { startMockModel, type MockModel, type MockRequest } from '@antiphon/testing/providers';
import { createModels, type Models } from './create-models.js';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

type Body = Record<string, unknown> & { readonly messages: readonly Record<string, unknown>[] };
interface Refusal {
  readonly status?: number;
  readonly body: unknown;
}

const openAiError = (message: string, param: string | null = null): Refusal => ({
  body: { error: { message, type: 'invalid_request_error', param, code: 'unsupported_parameter' } },
});
const anthropicError = (message: string): Refusal => ({
  body: { type: 'error', error: { type: 'invalid_request_error', message } },
});

interface Server {
  readonly mock: MockModel;
  readonly models: Models;
  readonly bodies: () => Body[];
}

/** Starts a server that refuses some requests. `refuse` returns null for one that it takes. */
const start = async (
  kind: string,
  refuse: (body: Body, request: MockRequest) => Refusal | null,
  parameters: readonly object[] = [],
  settings: object = {},
): Promise<Server> => {
  const mock = await startMockModel((request) => {
    const refusal = refuse(request.seen.body as Body, request);
    return refusal === null ? { text: ['fine'] } : { status: 400, ...refusal };
  });
  cleanups.push(() => mock.close());
  const baseUrl = kind === 'anthropic' ? mock.url : `${mock.url}/v1`;
  const providers = [{ name: 'it', kind, baseUrl, apiKeyEnv: 'KEY', ...settings }];
  const config = { source: null, providers, parameters } as unknown as AntiphonConfig;
  const models = createModels(
    config,
    { KEY: 'a-key' },
    { readStoredKey: () => Promise.resolve('stored-key-1') },
  );
  cleanups.push(() => models.close());
  return { mock, models, bodies: () => mock.requests.map(({ body }) => body as Body) };
};

const USER: ModelMessage = { role: 'user', text: 'hello' };
const TOOL: ModelTool = { name: 'echo', description: 'd', inputSchema: { type: 'object' } };
const TWO_CALLS: readonly ModelMessage[] = [
  USER,
  {
    role: 'assistant',
    text: '',
    toolCalls: ['a', 'b'].map((id) => ({ id, name: 'echo', input: {} })),
  },
  { role: 'tool', results: ['a', 'b'].map((id) => ({ id, name: 'echo', content: id, isError: false })) },
];

const ask = (models: Models, more: Partial<ModelRequest> = {}) =>
  models.complete(
    {
      ...{ provider: 'it', model: 'gpt-5', system: 'Be brief.', messages: [USER], tools: [TOOL] },
      ...{ maxOutputTokens: 4_096, signal: new AbortController().signal, streaming: true, ...more },
    },
    { onText: () => undefined, onThought: () => undefined },
  );

interface Case {
  readonly kind: string;
  /** Settings of the provider. */
  readonly provider?: object;
  readonly request?: Partial<ModelRequest>;
  /** Returns the server's refusal of a request; null if it takes it. */
  readonly refuse: (body: Body, request: MockRequest) => Refusal | null;
  readonly accepted: object;
  readonly without?: string;
}

const has = (body: Body, name: string): boolean => name in body;
const roleOf = (body: Body): unknown => body.messages[0]?.['role'];

/** Refusals of real servers, as their users report them. */
const CASES: Readonly<Record<string, Case>> = {
  'max_tokens, which OpenAI’s newer models refuse': {
    kind: 'openai-compatible',
    refuse: (body) =>
      has(body, 'max_tokens')
        ? openAiError(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            'max_tokens',
          )
        : null,
    accepted: { max_completion_tokens: 4_096 },
    without: 'max_tokens',
  },
  'max_completion_tokens, which Mistral names only by its place': {
    kind: 'openai',
    refuse: (body) =>
      has(body, 'max_completion_tokens')
        ? {
            status: 422,
            body: {
              detail: [
                {
                  type: 'extra_forbidden',
                  loc: ['body', 'max_completion_tokens'],
                  msg: 'Extra inputs are not permitted',
                },
              ],
            },
          }
        : null,
    accepted: { max_tokens: 4_096 },
    without: 'max_completion_tokens',
  },
  'an output limit over the model’s own': {
    kind: 'openai-compatible',
    refuse: (body) =>
      Number(body['max_tokens']) > 2_000
        ? openAiError('max_tokens is too large: 4096. This model supports at most 2000 completion tokens.')
        : null,
    accepted: { max_tokens: 2_000 },
  },
  'a temperature': {
    kind: 'openai-compatible',
    request: { temperature: 0.5 },
    refuse: (body) =>
      has(body, 'temperature')
        ? openAiError(
            "Unsupported value: 'temperature' does not support 0.5 with this model. Only the default (1) value is supported.",
            'temperature',
          )
        : null,
    accepted: { model: 'gpt-5' },
    without: 'temperature',
  },
  'the usage option of a stream': {
    kind: 'openai-compatible',
    refuse: (body) =>
      has(body, 'stream_options')
        ? openAiError('Unrecognized request argument supplied: stream_options')
        : null,
    accepted: { stream: true },
    without: 'stream_options',
  },
  'a stream, for an organisation that is not verified': {
    kind: 'openai',
    refuse: (body) =>
      has(body, 'stream')
        ? openAiError('Your organization must be verified to stream this model.', 'stream')
        : null,
    accepted: { model: 'gpt-5' },
    without: 'stream',
  },
  'the role of the system text': {
    kind: 'openai',
    refuse: (body) =>
      roleOf(body) === 'system'
        ? openAiError("Unsupported value: 'messages[0].role' does not support 'system' with this model.")
        : null,
    accepted: { messages: [{ role: 'developer', content: 'Be brief.' }, expect.anything()] },
  },
  'every role of a system text, in a model’s template': {
    kind: 'openai-compatible',
    refuse: (body) =>
      roleOf(body) === 'user'
        ? null
        : { status: 500, body: { error: { message: 'System role not supported' } } },
    accepted: { messages: [{ role: 'user', content: 'Be brief.\n\nhello' }] },
  },
  'keywords of a tool’s schema': {
    kind: 'openai-compatible',
    request: {
      tools: [
        {
          ...TOOL,
          inputSchema: {
            $schema: 'http://json-schema.org/draft-07/schema#',
            type: 'object',
            additionalProperties: false,
            properties: { at: { anyOf: [{ type: 'string' }, { type: 'null' }], default: null } },
          },
        },
      ],
    },
    refuse: (body) =>
      JSON.stringify(body['tools']).includes('additionalProperties')
        ? openAiError(
            'Invalid JSON payload received. Unknown name "additionalProperties" at \'tools[0].function_declarations[0].parameters\'',
          )
        : null,
    accepted: {
      tools: [{ function: { parameters: { type: 'object', properties: { at: { type: 'string' } } } } }],
    },
  },
  'two tool calls in one message': {
    kind: 'openai-compatible',
    request: { messages: TWO_CALLS },
    refuse: (body) =>
      body.messages.some(({ tool_calls }) => Array.isArray(tool_calls) && tool_calls.length > 1)
        ? { status: 500, body: { error: { message: 'This model only supports single tool-calls at once!' } } }
        : null,
    accepted: {
      parallel_tool_calls: false,
      messages: [
        ...[expect.anything(), expect.anything()],
        ...[
          { tool_calls: [{ id: 'a' }] },
          { tool_call_id: 'a' },
          { tool_calls: [{ id: 'b' }] },
          { tool_call_id: 'b' },
        ],
      ],
    },
  },
  'null as the content of a message': {
    kind: 'openai-compatible',
    request: { messages: TWO_CALLS },
    refuse: (body) =>
      body.messages.some(({ content }) => content === null)
        ? openAiError('messages.2.content: Input should be a valid string, got null')
        : null,
    accepted: {
      messages: expect.arrayContaining([expect.objectContaining({ role: 'assistant', content: '' })]),
    },
  },
  'an effort of reasoning': {
    kind: 'openai-compatible',
    request: { thinking: 'high' },
    refuse: (body) =>
      has(body, 'reasoning_effort')
        ? openAiError('Unrecognized request argument supplied: reasoning_effort')
        : null,
    accepted: { model: 'gpt-5' },
    without: 'reasoning_effort',
  },
  'reasoning that is sent back': {
    kind: 'openai-compatible',
    request: {
      messages: TWO_CALLS.map((message) =>
        message.role === 'assistant'
          ? {
              ...message,
              thought: 'hm',
              providerState: '{"openai":{"thoughtIn":["reasoning"],"fields":{},"calls":[]}}',
            }
          : message,
      ),
    },
    refuse: (body) =>
      body.messages.some((message) => 'reasoning' in message)
        ? {
            status: 422,
            body: {
              detail: [
                {
                  type: 'extra_forbidden',
                  loc: ['messages', 2, 'assistant', 'reasoning'],
                  msg: 'Extra inputs are not permitted',
                },
              ],
            },
          }
        : null,
    accepted: { model: 'gpt-5' },
  },
  'a message without its reasoning': {
    kind: 'openai-compatible',
    request: { messages: TWO_CALLS },
    refuse: (body) =>
      body.messages.some((message) => 'tool_calls' in message && !('reasoning_content' in message))
        ? openAiError('The `reasoning_content` in the thinking mode must be passed back to the API.')
        : null,
    accepted: { messages: expect.arrayContaining([expect.objectContaining({ reasoning_content: '' })]) },
  },
  'a budget of thinking, at a model that adapts': {
    kind: 'anthropic',
    request: { model: 'claude-next', thinking: 2_048 },
    refuse: (body) =>
      JSON.stringify(body['thinking']).includes('enabled')
        ? anthropicError(
            '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.',
          )
        : null,
    accepted: { thinking: { type: 'adaptive' }, output_config: { effort: 'low' } },
  },
  'marks for a prompt cache': {
    kind: 'anthropic',
    refuse: (body) =>
      JSON.stringify(body).includes('cache_control')
        ? anthropicError('system.0.cache_control: Extra inputs are not permitted')
        : null,
    accepted: { system: 'Be brief.', messages: [{ role: 'user', content: 'hello' }] },
  },
  'a system text that is a list': {
    kind: 'anthropic',
    refuse: (body) =>
      typeof body['system'] === 'string' ? null : anthropicError('system: Input should be a valid string'),
    accepted: { system: 'Be brief.' },
  },
  'a system text that is no list': {
    kind: 'anthropic',
    provider: { promptCache: false },
    refuse: (body) =>
      typeof body['system'] === 'string' ? anthropicError('system: Input should be a valid list') : null,
    accepted: { system: [{ type: 'text', text: 'Be brief.' }] },
  },
};

describe('a server that refuses', () => {
  it.each(Object.entries(CASES))('%s is asked again at once, and never again so', async (_name, one) => {
    const server = await start(one.kind, one.refuse, [], one.provider);
    expect(await ask(server.models, one.request)).toMatchObject({ text: 'fine' });
    const [first, ...later] = server.bodies();
    expect(later.length).toBeGreaterThan(0);
    expect(later.at(-1)).toMatchObject(one.accepted);
    if (one.without !== undefined) {
      expect(first).toHaveProperty([one.without]);
      expect(later.at(-1)).not.toHaveProperty([one.without]);
    }
    // Also with another key of the same provider, whose adapter is another one.
    await ask(server.models, one.request);
    expect(server.bodies()).toHaveLength(later.length + 2);
    expect(server.bodies().at(-1)).toMatchObject(one.accepted);
  });

  it('a parameter within its stream is asked again, too', async () => {
    const mock = await startMockModel(({ seen }) =>
      has(seen.body as Body, 'stream_options')
        ? { raw: 'data: {"error":{"message":"Unknown parameter: stream_options","code":400}}\n\n' }
        : { text: ['fine'] },
    );
    cleanups.push(() => mock.close());
    const providers = [{ name: 'it', kind: 'openai-compatible', baseUrl: `${mock.url}/v1`, apiKeyEnv: null }];
    const models = createModels({ source: null, providers, parameters: [] } as unknown as AntiphonConfig, {});
    cleanups.push(() => models.close());
    expect(await ask(models)).toMatchObject({ text: 'fine' });
    expect(mock.requests).toHaveLength(2);
  });

  it('one model is asked as before for another', async () => {
    const refuse = CASES['max_tokens, which OpenAI’s newer models refuse']?.refuse;
    const server = await start('openai-compatible', (body, request) =>
      body['model'] === 'gpt-5' ? (refuse?.(body, request) ?? null) : null,
    );
    await ask(server.models);
    await ask(server.models, { model: 'llama' });
    expect(server.bodies().at(-1)).toMatchObject({ model: 'llama', max_tokens: 4_096 });
  });

  it('a parameter that the configuration sets is not asked otherwise', async () => {
    const parameters = [{ provider: 'it', model: 'gpt-*', outputLimit: 'max_tokens' }];
    const refuse = CASES['max_tokens, which OpenAI’s newer models refuse']?.refuse ?? (() => null);
    const server = await start('openai-compatible', refuse, parameters);
    expect(await ask(server.models).catch((error: unknown) => error)).toBeInstanceOf(ModelFailure);
    expect(server.bodies()).toHaveLength(1);
  });

  it.each([
    ['everything, by every name', 'Unsupported: max_tokens, max_completion_tokens, stream_options'],
    ['a request without a name', 'Bad request'],
    ['a name in another sense', 'The answer may not mention max_tokens'],
  ])('%s fails after a few requests', async (_name, message) => {
    const server = await start('openai-compatible', () => openAiError(message));
    const failure = await ask(server.models).catch((error: unknown) => error);
    expect(failure).toMatchObject({ status: 400, refused: true, retryable: false });
    expect(server.bodies().length).toBeLessThan(8);
    expect((failure as ModelFailure).message).toContain(message);
  });

  it('the repeated request leaves nothing learned', async () => {
    let refusals = 0;
    const server = await start('openai-compatible', (body) => {
      if (refusals++ < 2)
        return has(body, 'stream_options')
          ? openAiError('Unknown: stream_options')
          : { status: 401, body: {} };
      return null;
    });
    expect(await ask(server.models).catch((error: unknown) => error)).toMatchObject({ status: 401 });
    await ask(server.models);
    expect(server.bodies().at(-1)).toHaveProperty('stream_options');
  });
});

describe('the configuration of a model', () => {
  it('wins over the table of families', async () => {
    const parameters = [
      { provider: 'other', model: '*', systemRole: 'user' },
      { provider: 'it', model: 'gpt-*', systemRole: 'developer', streamOptions: false },
      { provider: 'openai-compatible', model: '*', outputLimit: 'max_completion_tokens', systemRole: 'user' },
    ];
    const server = await start('openai-compatible', () => null, parameters);
    await ask(server.models);
    expect(server.bodies()[0]).toMatchObject({
      max_completion_tokens: 4_096,
      messages: [{ role: 'developer' }, { role: 'user' }],
    });
    expect(server.bodies()[0]).not.toHaveProperty('stream_options');
  });
});
