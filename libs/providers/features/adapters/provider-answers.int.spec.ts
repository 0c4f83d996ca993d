import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { ModelFailure, type ModelMessage, type ModelRequest } from '@antiphon/providers-domain';
import type { AntiphonConfig, ProviderConfig } from '@antiphon/config';
import { openAiStream, startMockModel, type MockModel, type MockScript } from '@antiphon/testing/providers';
import { createModels, type Models } from './create-models.js';
import { describeProvider } from './provider-settings.js';

const KEY = 'sk-canary-Zm9vYmFy-0123456789';
const NOW = Date.parse('2026-11-21T12:00:00Z');

let script: MockScript;
let mock: MockModel;
let models: Models;

const provider = (more: Partial<ProviderConfig>): ProviderConfig =>
  ({
    name: 'it',
    kind: 'openai',
    baseUrl: `${mock.url}/v1`,
    apiKeyEnv: 'MY_KEY',
    storedKey: false,
    promptCache: true,
    ...more,
  }) as ProviderConfig;
const use = (more: Partial<ProviderConfig>, env: Record<string, string> = { MY_KEY: KEY }): void => {
  models?.close();
  models = createModels(
    { source: null, providers: [provider(more)], parameters: [] } as unknown as AntiphonConfig,
    env,
    {
      now: () => NOW,
    },
  );
};

beforeEach(async () => {
  script = () => ({ text: ['fine'] });
  mock = await startMockModel((request) => script(request));
  use({});
});
afterEach(async () => {
  models.close();
  await mock.close();
});

const request = (more: Partial<ModelRequest> = {}): ModelRequest => ({
  provider: 'it',
  model: 'm',
  system: '',
  messages: [{ role: 'user', text: 'hello' }],
  tools: [],
  maxOutputTokens: 100,
  signal: new AbortController().signal,
  streaming: true,
  ...more,
});
const sink = { onText: () => undefined, onThought: () => undefined };
const failureOf = async (more: Partial<ModelRequest> = {}): Promise<ModelFailure> => {
  const result = await models.complete(request(more), sink).catch((error: unknown) => error);
  if (!(result instanceof ModelFailure)) throw new Error('it did not fail with a ModelFailure');
  return result;
};
const answerWith = (status: number, body: unknown, headers?: Record<string, string>): void => {
  script = () => ({ status, body, ...(headers === undefined ? {} : { headers }) });
};

describe('an error of the provider', () => {
  it.each([
    [400, false],
    [401, false],
    [402, false],
    [403, false],
    [404, false],
    [413, false],
    [422, false],
    [408, true],
    [409, true],
    [429, true],
    [500, true],
    [502, true],
    [503, true],
    [529, true],
  ])('with status %i is retryable: %s', async (status, retryable) => {
    answerWith(status, { error: { message: 'because' } });
    expect(await failureOf()).toMatchObject({
      reason: 'provider_error',
      status,
      retryable,
      dispatched: true,
      refused: true,
      message: expect.stringContaining(`provider error ${status}: because`),
    });
  });

  // @shows U31
  it.each([
    ['OpenAI', { error: { message: 'why', type: 't', code: 'c' } }],
    ['Anthropic', { type: 'error', error: { type: 'invalid_request_error', message: 'why' } }],
    ['Ollama', { error: 'why' }],
    ['FastAPI', { detail: [{ loc: ['body'], msg: 'why' }] }],
    ['a gateway', { message: 'why' }],
  ])('carries the message in the format of %s', async (_vendor, body) => {
    answerWith(400, body);
    expect((await failureOf()).message).toMatch(/^provider error 400: why; /);
  });

  it('has a message of one line, at most 500 characters', async () => {
    answerWith(400, { error: { message: `first\nsecond\u001b[31m ${'x'.repeat(50_000)}` } });
    const { message } = await failureOf();
    expect(message.length).toBeLessThanOrEqual(500);
    expect(message).toMatch(/^provider error 400: first second \[31m x+…; /);
  });

  it.each([
    ['2', 2_000],
    ['0.5', 500],
    ['-5', 0],
    ['99999999', 60_000],
    ['Wed, 21 Oct 1999 07:28:00 GMT', 0],
    ['Sat, 21 Nov 2026 12:00:07 GMT', 7_000],
    ['abc', undefined],
  ])('with retry-after %s asks for %s ms', async (value, expected) => {
    answerWith(429, {}, { 'retry-after': value });
    expect((await failureOf()).retryAfterMs).toBe(expected);
  });

  it('is not retryable when the quota is used up or the vendor says so', async () => {
    answerWith(429, { error: { message: 'no credit', code: 'insufficient_quota' } });
    expect(await failureOf()).toMatchObject({ status: 429, retryable: false });
    answerWith(500, {}, { 'x-should-retry': 'false' });
    expect(await failureOf()).toMatchObject({
      ...{ message: expect.stringMatching(/^provider error 500; /), retryable: false },
    });
  });

  it('is recognised behind status 200', async () => {
    answerWith(200, { error: { message: 'upstream died', code: 503 } });
    expect(await failureOf()).toMatchObject({ reason: 'provider_error', status: 503, retryable: true });
  });

  it('does not affect other calls', async () => {
    script = ({ user }) => (user === 'bad' ? { status: 401, body: { error: 'no' } } : { text: ['fine'] });
    const [good, bad] = await Promise.all([
      models.complete(request(), sink),
      failureOf({ messages: [{ role: 'user', text: 'bad' }] }),
    ]);
    expect(good.text).toBe('fine');
    expect(bad).toMatchObject({ status: 401, retryable: false });
  });
});

describe('the key', () => {
  const everything = (failure: ModelFailure): string =>
    [
      failure.message,
      failure.stack,
      String(failure.cause),
      JSON.stringify(failure),
      (failure.cause as Error)?.stack,
    ].join('\n');

  it.each([
    KEY,
    encodeURIComponent(KEY),
    Buffer.from(KEY).toString('base64'),
    `Bearer ${KEY}`,
    'sk-ca***********6789',
  ])('is redacted from a failure that echoes it as %s', async (echo) => {
    answerWith(401, { error: { message: `Incorrect API key provided: ${echo}. Get one.` } });
    const text = everything(await failureOf());
    expect(text).not.toContain(echo);
    expect(text).toContain('provider error 401: Incorrect API key provided: ');
    expect(text).toContain('Get one.');
  });

  it('is redacted from a failure within a stream', async () => {
    const [first] = openAiStream('m', {});
    script = () => ({
      reply: {},
      before: (_piece, index) => (index === 1 ? Promise.reject(new Error(`${first}${KEY}`)) : undefined),
    });
    expect(everything(await failureOf())).not.toContain(KEY);
  });

  it('is never printed', async () => {
    const names = ['log', 'info', 'warn', 'error', 'debug'] as const;
    const spies = names.map((name) => jest.spyOn(console, name).mockImplementation(() => undefined));
    const out = [process.stdout, process.stderr].map((stream) =>
      jest.spyOn(stream, 'write').mockReturnValue(true),
    );
    for (const kind of ['openai', 'anthropic'] as const) {
      use({ kind });
      for (const body of [{ error: KEY }, `data: ${KEY}`]) {
        answerWith(400, body);
        await failureOf();
        await failureOf({ streaming: false });
      }
    }
    const printed = JSON.stringify([...spies, ...out].map((spy) => spy.mock.calls));
    for (const spy of [...spies, ...out]) spy.mockRestore();
    expect(printed).not.toContain(KEY);
  });

  it.each([
    [{}, 'provider it has no key: the environment variable MY_KEY is not set'],
    [{ MY_KEY: ' \n' }, 'provider it has no key: the environment variable MY_KEY is not set'],
    [
      { MY_KEY: 'ké y' },
      'provider it has no key: the environment variable MY_KEY holds what cannot be a key',
    ],
  ])('fails with the name of its variable when the environment is %j', async (env, message) => {
    use({}, env);
    expect(await failureOf()).toMatchObject({
      reason: 'provider_error',
      message,
      dispatched: false,
      retryable: false,
    });
    expect(mock.requests).toHaveLength(0);
  });

  it('is sent without the line break at the end of a secret file', async () => {
    use({}, { MY_KEY: `${KEY}\n` });
    await models.complete(request(), sink);
    expect(mock.requests[0]?.headers.authorization).toBe(`Bearer ${KEY}`);
  });

  it('is not part of the status', () => {
    const shown = describeProvider(provider({}), { MY_KEY: KEY });
    expect(shown).toEqual({
      name: 'it',
      kind: 'openai',
      baseUrl: `${mock.url}/v1`,
      keyVariable: 'MY_KEY',
      ready: true,
      scripted: false,
    });
    expect(describeProvider(provider({}), {}).ready).toBe(false);
  });
});

const CONVERSATION: readonly ModelMessage[] = [
  { role: 'user', text: 'What is 2 + 3?' },
  {
    role: 'assistant',
    text: '',
    toolCalls: [
      { id: 'call_1', name: 'calculator', input: { expression: '2 + 3' } },
      { id: 'functions.echo:0', name: 'echo', input: {} },
    ],
  },
  {
    role: 'tool',
    results: [
      { id: 'call_1', name: 'calculator', content: '5', isError: false },
      { id: 'functions.echo:0', name: 'echo', content: 'broken', isError: true },
    ],
  },
  { role: 'assistant', text: 'Five.', toolCalls: [] },
  { role: 'user', text: 'Thanks' },
];
const ASKING = {
  system: 'Be brief.',
  messages: CONVERSATION,
  tools: [{ name: 'calculator', description: 'Computes.', inputSchema: { type: 'object', properties: {} } }],
};

/** Mark of a part that the vendor may cache. */
const CACHED = { cache_control: { type: 'ephemeral' } };

describe('a request', () => {
  it("has Anthropic's shape for Anthropic", async () => {
    use({ kind: 'anthropic' });
    await models.complete(request(ASKING), sink);
    expect(mock.requests[0]).toMatchObject({ method: 'POST', path: '/v1/messages' });
    expect(mock.requests[0]?.body).toEqual({
      model: 'm',
      max_tokens: 100,
      stream: true,
      system: [{ type: 'text', text: 'Be brief.', ...CACHED }],
      tools: [
        { name: 'calculator', description: 'Computes.', input_schema: { type: 'object', properties: {} } },
      ],
      messages: [
        { role: 'user', content: 'What is 2 + 3?' },
        {
          role: 'assistant',
          content: [
            { type: 'tool_use', id: 'call_1', name: 'calculator', input: { expression: '2 + 3' } },
            { type: 'tool_use', id: 'call_2', name: 'echo', input: {} },
          ],
        },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 'call_1', content: '5' },
            { type: 'tool_result', tool_use_id: 'call_2', content: 'broken', is_error: true, ...CACHED },
          ],
        },
        { role: 'assistant', content: [{ type: 'text', text: 'Five.' }] },
        { role: 'user', content: [{ type: 'text', text: 'Thanks', ...CACHED }] },
      ],
    });
  });

  it("has OpenAI's shape for the others", async () => {
    await models.complete(request(ASKING), sink);
    expect(mock.requests[0]).toMatchObject({ method: 'POST', path: '/v1/chat/completions' });
    expect(mock.requests[0]?.body).toMatchObject({
      model: 'm',
      max_completion_tokens: 100,
      stream: true,
      stream_options: { include_usage: true },
      tools: [
        {
          type: 'function',
          function: {
            name: 'calculator',
            description: 'Computes.',
            parameters: { type: 'object', properties: {} },
          },
        },
      ],
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'What is 2 + 3?' },
        { role: 'assistant', content: null, tool_calls: [{ id: 'call_1' }, { id: 'call_2' }] },
        { role: 'tool', tool_call_id: 'call_1', content: '5' },
        { role: 'tool', tool_call_id: 'call_2', content: 'Error: broken' },
        { role: 'assistant', content: 'Five.' },
        { role: 'user', content: 'Thanks' },
      ],
    });
  });

  it.each(['anthropic', 'openai'] as const)(
    'carries no headers of an SDK or of the environment (%s)',
    async (kind) => {
      process.env['ANTHROPIC_CUSTOM_HEADERS'] = process.env['OPENAI_CUSTOM_HEADERS'] = 'x-from-env: leaked';
      try {
        use({ kind });
        await models.complete(request(), sink);
      } finally {
        delete process.env['ANTHROPIC_CUSTOM_HEADERS'];
        delete process.env['OPENAI_CUSTOM_HEADERS'];
      }
      const headers = Object.keys(mock.requests[0]?.headers ?? {});
      expect(headers.filter((name) => /stainless|^x-from|organization|project/.test(name))).toEqual([]);
      expect(mock.requests[0]?.headers['user-agent']).toMatch(/^antiphon\//);
    },
  );

  it('carries no key where none is configured', async () => {
    use({ kind: 'ollama', baseUrl: mock.url, apiKeyEnv: null });
    await models.complete(request(), sink);
    expect(mock.requests[0]?.path).toBe('/v1/chat/completions');
    expect(mock.requests[0]?.headers.authorization).toBeUndefined();
    expect(mock.requests[0]?.body).toMatchObject({ max_tokens: 100 });
  });

  it('carries the credentials of base_url where no key is configured', async () => {
    use({ kind: 'ollama', baseUrl: mock.url.replace('//', '//user:p%40ss@'), apiKeyEnv: null });
    await models.complete(request(), sink);
    const basic = Buffer.from('user:p@ss').toString('base64');
    expect(mock.requests[0]?.headers.authorization).toBe(`Basic ${basic}`);
  });
});

describe('an invalid provider configuration', () => {
  it.each([
    [{ kind: 'cli', baseUrl: null }, 'PROVIDER.KIND_UNAVAILABLE'],
    [{ kind: 'openai-compatible', baseUrl: null }, 'PROVIDER.BASE_URL_MISSING'],
    [{ kind: 'openai', baseUrl: 'ftp://x' }, 'PROVIDER.BASE_URL_INVALID'],
    [{ kind: 'scripted', baseUrl: 'http://x' }, 'PROVIDER.BASE_URL_INVALID'],
    [{ kind: 'scripted', baseUrl: 'file:///nowhere/x.json' }, 'PROVIDER.SCENARIO_UNREADABLE'],
  ] as const)('is refused at load: %j', (more, code) => {
    expect(() => use(more)).toThrow(expect.objectContaining({ kind: 'invalid', code }));
    use({});
  });

  it('fails a call to a provider that is not configured', async () => {
    expect(await failureOf({ provider: 'other' })).toMatchObject({
      message: 'no provider is named "other"',
      dispatched: false,
      retryable: false,
    });
  });
});
