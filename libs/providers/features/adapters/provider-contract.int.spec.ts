import { LLMock } from '@copilotkit/aimock';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type {
  ModelAnswer,
  ModelMessage,
  ModelRequest,
  ModelSink,
  ModelTool,
} from '@antiphon/providers-domain';
import type { AntiphonConfig, ProviderConfig, ProviderKind } from '@antiphon/config';
import { createModels, type Models } from './create-models.js';

const KEY = 'sk-contract-0123456789abcdef';
const ENV = {
  ANTHROPIC_API_KEY: KEY,
  OPENAI_API_KEY: KEY,
  OPENROUTER_API_KEY: KEY,
  GEMINI_API_KEY: KEY,
  AWS_BEARER_TOKEN_BEDROCK: KEY,
};

const CALCULATOR: ModelTool = {
  name: 'calculator',
  description: 'Computes an arithmetic expression.',
  inputSchema: { type: 'object', properties: { expression: { type: 'string' } }, required: ['expression'] },
};
const ECHO: ModelTool = { name: 'echo', description: 'Returns its input.', inputSchema: { type: 'object' } };

/** The same messages for every kind: commands for the scripted provider, fixtures for aimock. */
const SUM = '/tool calculator {"expression":"2 + 3"}';
const BOTH = '/tool calculator {"expression":"2 + 3"}\n/tool echo {"say":"hé 🎉"}';

const KINDS: readonly { kind: ProviderKind; path: string; at: string }[] = [
  { kind: 'anthropic', path: '', at: '/v1/messages' },
  { kind: 'openai', path: '/v1', at: '/v1/chat/completions' },
  { kind: 'openai-compatible', path: '/v1/', at: '/v1/chat/completions' },
  { kind: 'openrouter', path: '/api/v1', at: '/api/v1/chat/completions' },
  { kind: 'ollama', path: '', at: '/v1/chat/completions' },
  { kind: 'gemini', path: '/v1beta', at: '/v1beta/models/mock-model' },
  { kind: 'bedrock', path: '', at: '/model/mock-model/converse' },
  { kind: 'scripted', path: '', at: '' },
];

const configFor = (providers: readonly ProviderConfig[]): AntiphonConfig =>
  ({ source: null, providers, parameters: [] }) as unknown as AntiphonConfig;

const recorder = () => {
  const deltas: string[] = [];
  const sink: ModelSink = { onText: (delta) => deltas.push(delta), onThought: () => undefined };
  return { sink, deltas };
};

const user = (text: string): ModelMessage => ({ role: 'user', text });

describe.each(KINDS)('a provider of kind $kind', ({ kind, path, at }) => {
  const mock = new LLMock({ port: 0, chunkSize: 5 });
  let models: Models;

  beforeAll(async () => {
    const calculator = { name: 'calculator', arguments: '{"expression":"2 + 3"}', id: 'call_calc' };
    const echo = { name: 'echo', arguments: '{"say":"hé 🎉"}', id: 'call_echo' };
    mock
      .on({ userMessage: BOTH, hasToolResult: false }, { toolCalls: [calculator, echo] })
      .on({ userMessage: SUM, hasToolResult: false }, { toolCalls: [calculator] })
      .on({ hasToolResult: true }, { content: 'calculator answered: 5' })
      .onMessage('two words', {
        content: 'two words — ünï 🎉 end',
        usage: { input_tokens: 21, output_tokens: 9, prompt_tokens: 21, completion_tokens: 9 },
      });
    await mock.start();
    const baseUrl = kind === 'scripted' ? null : `${mock.baseUrl}${path}`;
    models = createModels(
      configFor([{ name: 'it', kind, baseUrl, apiKeyEnv: null, storedKey: false, promptCache: true }]),
      ENV,
    );
  });
  afterAll(async () => {
    models.close();
    await mock.stop();
  });

  const request = (messages: readonly ModelMessage[], more: Partial<ModelRequest> = {}): ModelRequest => ({
    provider: 'it',
    model: 'mock-model',
    system: 'You are brief.',
    messages,
    tools: [CALCULATOR, ECHO],
    maxOutputTokens: 1_000,
    signal: new AbortController().signal,
    streaming: true,
    ...more,
  });

  it.each([true, false])('returns text and emits it in pieces (streaming: %s)', async (streaming) => {
    const { sink, deltas } = recorder();
    const answer = await models.complete(request([user('two words')], { streaming }), sink);
    expect(answer.text).toContain('two words');
    expect(deltas.join('')).toBe(answer.text);
    expect(deltas.every((delta) => delta !== '')).toBe(true);
    expect(answer).toMatchObject({ thought: '', toolCalls: [], finishReason: 'stop' });
    expect(answer.usage?.inputTokens).toBeGreaterThan(0);
    expect(answer.usage?.outputTokens).toBeGreaterThan(0);
    if (streaming) expect(deltas.length).toBeGreaterThan(1);
    if (at !== '') expect(mock.getLastRequest()?.path.split(/[:?]|-stream/)[0]).toBe(at);
  });

  it.each([true, false])('requests a tool and uses its result (streaming: %s)', async (streaming) => {
    const asked = await models.complete(request([user(SUM)], { streaming }), recorder().sink);
    expect(asked.finishReason).toBe('tool_calls');
    expect(asked.toolCalls).toEqual([
      { providerCallId: expect.any(String), name: 'calculator', input: { expression: '2 + 3' } },
    ]);
    const [call] = asked.toolCalls;
    const messages: ModelMessage[] = [
      user(SUM),
      {
        role: 'assistant',
        text: asked.text,
        toolCalls: [{ id: call!.providerCallId, name: call!.name, input: call!.input as never }],
      },
      {
        role: 'tool',
        results: [{ id: call!.providerCallId, name: 'calculator', content: '5', isError: false }],
      },
    ];
    const answer = await models.complete(request(messages, { streaming }), recorder().sink);
    expect(answer.text).toContain('calculator answered: 5');
    expect(answer.finishReason).toBe('stop');
  });

  it.each([true, false])('requests tools in parallel (streaming: %s)', async (streaming) => {
    const answer: ModelAnswer = await models.complete(request([user(BOTH)], { streaming }), recorder().sink);
    expect(answer.toolCalls.map(({ name, input }) => ({ name, input }))).toEqual([
      { name: 'calculator', input: { expression: '2 + 3' } },
      { name: 'echo', input: { say: 'hé 🎉' } },
    ]);
    expect(new Set(answer.toolCalls.map((call) => call.providerCallId)).size).toBe(2);
  });

  it('uses no more input than its bound', async () => {
    const prompt = request([user('two words')]);
    const answer = await models.complete(prompt, recorder().sink);
    expect(models.inputBound(prompt, 'default')).toBeGreaterThanOrEqual(
      answer.usage?.inputTokens ?? Infinity,
    );
  });

  it('fails without dispatch when it is cancelled before the call', async () => {
    const signal = AbortSignal.abort();
    await expect(
      models.complete(request([user('two words')], { signal }), recorder().sink),
    ).rejects.toMatchObject({
      name: 'ModelFailure',
      reason: 'cancelled',
      dispatched: false,
      retryable: false,
    });
  });

  if (kind !== 'scripted')
    it("forwards the provider's error message without the key", async () => {
      mock.nextRequestError(429, { message: `slow down, ${KEY}`, type: 'rate_limit_error' });
      const failure = await models
        .complete(request([user('two words')]), recorder().sink)
        .catch((e: unknown) => e);
      expect(failure).toMatchObject({
        reason: 'provider_error',
        status: 429,
        retryable: true,
        dispatched: true,
      });
      expect((failure as Error).message).toMatch(
        /^provider error 429: slow down, \[redacted\].*; the account is over its rate at the vendor/,
      );
    });
});
