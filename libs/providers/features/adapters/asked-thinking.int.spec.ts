import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { AntiphonConfig } from '@antiphon/config';
import type { ModelMessage, ModelRequest } from '@antiphon/providers-domain';
import { startMockModel, type MockModel } from '@antiphon/testing/providers';
import { createModels, type Models } from './create-models.js';

let mock: MockModel;
let models: Models;

beforeAll(async () => {
  mock = await startMockModel(() => ({ text: ['fine'] }));
  const kinds = ['anthropic', 'openai', 'openai-compatible', 'openrouter', 'ollama'];
  const providers = kinds.map((kind) => ({
    ...{ name: kind, kind, apiKeyEnv: 'KEY' },
    baseUrl: kind === 'anthropic' ? mock.url : `${mock.url}/v1`,
  }));
  models = createModels({ source: null, providers, parameters: [] } as unknown as AntiphonConfig, {
    KEY: 'k',
  });
});
afterAll(async () => {
  models.close();
  await mock.close();
});

const bodyOf = async (provider: string, model: string, more: Partial<ModelRequest> = {}) => {
  await models.complete(
    {
      ...{ provider, model, system: '', messages: [{ role: 'user', text: 'hello' }], tools: [] },
      ...{ maxOutputTokens: 8_000, signal: new AbortController().signal, streaming: true, ...more },
    },
    { onText: () => undefined, onThought: () => undefined },
  );
  return mock.requests.at(-1)?.body as Record<string, unknown>;
};

const budget = (tokens: number) => ({ thinking: { type: 'enabled', budget_tokens: tokens } });
const adaptive = (effort: string) => ({
  thinking: { type: 'adaptive', display: 'summarized' },
  output_config: { effort },
});

describe('thinking that an agent asks for', () => {
  it.each([
    ['anthropic', 'claude-sonnet-4-5', 2_048, budget(2_048)],
    ['anthropic', 'claude-3-7-sonnet-20250219', 'low', budget(2_048)],
    ['anthropic', 'claude-haiku-4-5-20251001', 'high', budget(7_744)],
    ['anthropic', 'claude-opus-4-6', 'high', adaptive('high')],
    ['anthropic', 'claude-sonnet-5-5', 4_000, adaptive('medium')],
    ['anthropic', 'claude-mythos-preview', 'medium', adaptive('medium')],
    ['anthropic', 'deepseek-v4-pro', 'low', budget(2_048)],
    ['openai', 'gpt-5', 'high', { reasoning_effort: 'high' }],
    ['openai', 'o4-mini', 1_024, { reasoning_effort: 'low' }],
    ['openai-compatible', 'qwen3', 8_192, { reasoning_effort: 'medium' }],
    ['ollama', 'gpt-oss', 'low', { reasoning_effort: 'low' }],
    ['openrouter', 'anthropic/claude-sonnet-4.5', 3_000, { reasoning: { max_tokens: 3_000 } }],
    ['openrouter', 'openai/gpt-5', 'medium', { reasoning: { effort: 'medium' } }],
  ] as const)('%s has for %s and %s: %j', async (provider, model, thinking, expected) => {
    expect(await bodyOf(provider, model, { thinking })).toMatchObject(expected);
  });

  it.each([
    ['anthropic', 'claude-3-5-haiku-latest'],
    ['openai', 'gpt-4o'],
  ])('is left out by %s for %s, which does not think', async (provider, model) => {
    const keys = Object.keys(await bodyOf(provider, model, { thinking: 'high' }));
    expect(keys.filter((key) => /thinking|reasoning|output_config/.test(key))).toEqual([]);
  });

  it('is left out where the output limit has no room for it', async () => {
    expect(
      await bodyOf('anthropic', 'claude-sonnet-4-5', { thinking: 2_048, maxOutputTokens: 1_200 }),
    ).toMatchObject({
      max_tokens: 1_200,
    });
    expect(mock.requests.at(-1)?.body).not.toHaveProperty('thinking');
  });

  it('is sent without a temperature, which Anthropic refuses next to it', async () => {
    const more = { thinking: 2_048, temperature: 0.5 };
    expect(await bodyOf('anthropic', 'claude-sonnet-4-5', more)).not.toHaveProperty('temperature');
    expect(await bodyOf('anthropic', 'claude-sonnet-4-5', { temperature: 1.5 })).toMatchObject({
      temperature: 1,
    });
    expect(await bodyOf('openai', 'gpt-4o', { temperature: 1.5 })).toMatchObject({ temperature: 1.5 });
    expect(await bodyOf('openai', 'gpt-5', { temperature: 1.5 })).not.toHaveProperty('temperature');
  });
});

describe('thinking between the calls of tools', () => {
  const step = (state: object): readonly ModelMessage[] => [
    { role: 'user', text: 'earlier' },
    { role: 'assistant', text: 'yes', toolCalls: [] },
    { role: 'user', text: 'hello' },
    { role: 'assistant', text: '', toolCalls: [{ id: 'a', name: 'echo', input: {} }], ...state },
    { role: 'tool', results: [{ id: 'a', name: 'echo', content: 'x', isError: false }] },
  ];
  const block = { type: 'thinking', thinking: '', signature: 's' };
  const providerState = JSON.stringify({ anthropic: [{ thinking: 2, block }, { tool: true }] });
  const asked = { thinking: 2_048, model: 'claude-sonnet-4-5' } as const;

  it('continues where the turn began with it', async () => {
    const messages = step({ providerState, thought: 'hm' });
    const body = await bodyOf('anthropic', asked.model, { ...asked, messages });
    expect(body).toMatchObject(budget(2_048));
  });

  it('does not begin in a turn of another model, which Anthropic refuses', async () => {
    const body = await bodyOf('anthropic', asked.model, { ...asked, messages: step({}) });
    expect(body).not.toHaveProperty('thinking');
  });

  it('may begin at any time where the model adapts', async () => {
    const model = 'claude-sonnet-5';
    expect(await bodyOf('anthropic', model, { thinking: 'low', messages: step({}) })).toMatchObject(
      adaptive('low'),
    );
  });
});
